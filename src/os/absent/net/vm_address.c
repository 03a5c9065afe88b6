/* Without AF_VSOCK there are no addresses of virtual machines: an address of one has no family, and no socket takes
 * it. */
#include "os/net/socket_address.h"

void socket_address_of_vm(uint32_t machine, uint32_t port, struct socket_address *ret)
{
        (void)machine, (void)port;
        *ret = (struct socket_address){ .size = 0 };
}

void socket_address_vm(const struct socket_address *a, uint32_t *ret_machine, uint32_t *ret_port)
{
        (void)a;
        *ret_machine = *ret_port = SOCKET_VM_ANY;
}
