#include "board.h"

#include <string.h>

#include "lwip/etharp.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/sys.h"

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

/* ---- start and clock -------------------------------------------------------------------------- */

extern uint32_t data_begin[], data_end[], data_from[], bss_begin[], bss_end[], stack_begin[],
        stack_end[];

enum { PATTERN = 0x5a5a5a5a, CLOCK_HZ = 25000000 };

static volatile uint32_t ticks;

int main(void);

static void fault(void)
{
        board_print("fault\n");
        board_exit(3);
}

static void on_tick(void)
{
        ticks++;
}

void start(void);
void start(void)
{
        const uint32_t *free_end = (const uint32_t *)__builtin_frame_address(0) - 64;
        memcpy(data_begin, data_from, (size_t)((char *)data_end - (char *)data_begin));
        memset(bss_begin, 0, (size_t)((char *)bss_end - (char *)bss_begin));
        for (uint32_t *p = stack_begin; p < free_end; p++)
                *p = PATTERN;
        REGISTER(0xe000e014) = CLOCK_HZ / 1000 - 1; /* SysTick */
        REGISTER(0xe000e018) = 0;
        REGISTER(0xe000e010) = 7;
        REGISTER(0x40004010) = 16; /* UART0 */
        REGISTER(0x40004008) = 1;
        board_exit(main());
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
        (void (*)(void))stack_end,
        start,
        fault,
        fault,
        fault,
        fault,
        fault,
        [11] = fault,
        [15] = on_tick,
};

uint32_t sys_now(void)
{
        return ticks;
}

void board_sleep(void)
{
        __asm__ volatile("wfi");
}

size_t board_stack_used(void)
{
        const uint32_t *p = stack_begin;
        while (p < stack_end && *p == PATTERN)
                p++;
        return (size_t)((const char *)stack_end - (const char *)p);
}

/* ---- output and end --------------------------------------------------------------------------- */

void board_print(const char *text)
{
        for (; *text; text++) {
                while (REGISTER(0x40004004) & 1)
                        ;
                REGISTER(0x40004000) = (uint8_t)*text;
        }
}

void board_print_number(uint32_t n)
{
        char text[11], *p = text + 10;
        *p = 0;
        do {
                *--p = (char)('0' + n % 10);
                n /= 10;
        } while (n);
        board_print(p);
}

static int semihosting(int operation, void *parameters)
{
        register int r0 __asm__("r0") = operation;
        register void *r1 __asm__("r1") = parameters;
        __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
        return r0;
}

void board_arguments(char *to, size_t size)
{
        uintptr_t block[2] = { (uintptr_t)to, size };
        to[0] = 0;
        (void)semihosting(0x15, block);
}

void board_exit(int status)
{
        uintptr_t block[2] = { 0x20026, (uintptr_t)status };
        for (;;)
                (void)semihosting(0x20, block);
}

/* ---- LAN9118 ---------------------------------------------------------------------------------- */

#define LAN(offset) REGISTER(0x40200000 + (offset))
enum {
        RX_DATA = 0x00,
        TX_DATA = 0x20,
        RX_STATUS = 0x40,
        TX_STATUS = 0x48,
        TX_CFG = 0x70,
        HW_CFG = 0x74,
        RX_FIFO_INF = 0x7c,
        TX_FIFO_INF = 0x80,
        PMT_CTRL = 0x84,
        MAC_COMMAND = 0xa4,
        MAC_DATA = 0xa8,
        FRAME_MAX = 1536,
};

static struct netif *network;
static uint32_t frame[FRAME_MAX / 4];

static void mac_write(uint32_t number, uint32_t value)
{
        LAN(MAC_DATA) = value;
        LAN(MAC_COMMAND) = 0x80000000u | number;
        while (LAN(MAC_COMMAND) & 0x80000000u)
                ;
}

static err_t transmit(struct netif *n, struct pbuf *p)
{
        (void)n;
        if (p->tot_len > FRAME_MAX || (LAN(TX_FIFO_INF) & 0xffff) < p->tot_len + 16u)
                return ERR_BUF;
        const uint32_t size = pbuf_copy_partial(p, frame, FRAME_MAX, 0);
        LAN(TX_DATA) = 1u << 13 | 1u << 12 | size; /* one piece */
        LAN(TX_DATA) = size;
        for (uint32_t i = 0; i < (size + 3) / 4; i++)
                LAN(TX_DATA) = frame[i];
        (void)LAN(TX_STATUS);
        return ERR_OK;
}

bool board_poll(void)
{
        bool some = false;
        while (LAN(RX_FIFO_INF) >> 16 & 0xff) {
                const uint32_t size = LAN(RX_STATUS) >> 16 & 0x3fff, words = (size + 3) / 4;
                for (uint32_t i = 0; i < words; i++) {
                        const uint32_t word = LAN(RX_DATA);
                        if (i < FRAME_MAX / 4)
                                frame[i] = word;
                }
                some = true;
                struct pbuf *p = size < 4 || size > FRAME_MAX
                                         ? NULL
                                         : pbuf_alloc(PBUF_RAW, (u16_t)(size - 4), PBUF_POOL);
                if (!p)
                        continue; /* lost, as frames are */
                (void)pbuf_take(p, frame, (u16_t)(size - 4));
                if (network->input(p, network) != ERR_OK)
                        pbuf_free(p);
        }
        return some;
}

void board_network(struct netif *n)
{
        static const uint8_t mac[6] = { 0x52, 0x54, 0, 0x12, 0x34, 0x56 };
        network = n;
        while (!(LAN(PMT_CTRL) & 1))
                ;
        LAN(HW_CFG) = 1u << 20 | 5u << 16;
        mac_write(2, mac[4] | (uint32_t)mac[5] << 8);
        mac_write(3,
                  mac[0] | (uint32_t)mac[1] << 8 | (uint32_t)mac[2] << 16 | (uint32_t)mac[3] << 24);
        LAN(TX_CFG) = 2;
        mac_write(1, 1u << 3 | 1u << 2);
        memcpy(n->hwaddr, mac, 6);
        n->hwaddr_len = 6;
        n->mtu = 1500;
        n->flags =
                NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;
        n->output = etharp_output;
        n->linkoutput = transmit;
}
