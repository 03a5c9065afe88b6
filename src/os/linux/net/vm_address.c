/* Addresses of virtual machines: vsock(7). */
#include <string.h>
#include <sys/socket.h> /* before linux/vm_sockets.h, which needs it */

#include <linux/vm_sockets.h>

#include "os/net/socket_address.h"

_Static_assert(SOCKET_VM_ANY == VMADDR_CID_ANY && SOCKET_VM_ANY == VMADDR_PORT_ANY, "");

void socket_address_of_vm(uint32_t machine, uint32_t port, struct socket_address *ret)
{
        struct sockaddr_vm a = { .svm_family = AF_VSOCK, .svm_cid = machine, .svm_port = port };
        *ret = (struct socket_address){ .size = sizeof(a) };
        memcpy(&ret->at, &a, sizeof(a));
}

void socket_address_vm(const struct socket_address *a, uint32_t *ret_machine, uint32_t *ret_port)
{
        struct sockaddr_vm vm;
        memcpy(&vm, &a->at, sizeof(vm));
        *ret_machine = vm.svm_cid;
        *ret_port = vm.svm_port;
}
