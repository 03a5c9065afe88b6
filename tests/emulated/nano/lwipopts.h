/* lwIP for two TCP connections in little memory. */
#define NO_SYS                  1
#define SYS_LIGHTWEIGHT_PROT    0
#define LWIP_SOCKET             0
#define LWIP_NETCONN            0
#define LWIP_IPV4               1
#define LWIP_IPV6               0
#define LWIP_UDP                0
#define LWIP_RAW                0
#define LWIP_DHCP               0
#define LWIP_STATS              0
#define LWIP_ICMP               1
#define IP_REASSEMBLY           0
#define IP_FRAG                 0
#define ARP_QUEUEING            0
#define MEM_ALIGNMENT           4
#define MEM_SIZE                (8 * 1024)
#define MEMP_NUM_TCP_PCB        4
#define MEMP_NUM_TCP_PCB_LISTEN 1
#define MEMP_NUM_TCP_SEG        16
#define PBUF_POOL_SIZE          8
#define TCP_MSS                 1024
#define TCP_WND                 (4 * TCP_MSS)
#define TCP_SND_BUF             (3 * TCP_MSS)
#define TCP_SND_QUEUELEN        12
#define TCP_QUEUE_OOSEQ         0
#define LWIP_CHECKSUM_ON_COPY   0
