// almaif_core with a block RAM that the host shares: word accesses by a simple bus. Addresses below 0x10000 are
// registers, above it is the memory.
`default_nettype none

module almaif #(
    parameter MEM_BITS  = 12,
    parameter RING_BITS = 3
) (
    input  wire        clk,
    input  wire        rst,
    input  wire        host_valid,
    input  wire [16:2] host_addr,
    input  wire [3:0]  host_write,
    input  wire [31:0] host_wdata,
    output wire [31:0] host_rdata,
    output wire        irq
);

wire                dev_valid;
wire [3:0]          dev_write;
wire [MEM_BITS-1:2] dev_addr;
wire [31:0]         dev_wdata, reg_rdata;

almaif_core #(.MEM_BITS(MEM_BITS), .RING_BITS(RING_BITS)) core (
    .clk(clk), .rst(rst), .base(32'h10000),
    .reg_valid(host_valid && !host_addr[16]), .reg_write(host_write != 0), .reg_addr(host_addr[9:2]),
    .reg_wdata(host_wdata), .reg_rdata(reg_rdata),
    .mem_valid(dev_valid), .mem_write(dev_write), .mem_addr(dev_addr), .mem_wdata(dev_wdata),
    .mem_rdata(mem_q), .mem_ready(1'b1), .irq(irq));

// Two ports, each one access a cycle.
reg  [31:0] mem [0:(1 << (MEM_BITS - 2)) - 1];
reg  [31:0] mem_q, host_q;
reg         was_memory;
integer     b;

always @(posedge clk) begin
    if (dev_valid) begin
        for (b = 0; b < 4; b = b + 1)
            if (dev_write[b]) mem[dev_addr][8*b +: 8] <= dev_wdata[8*b +: 8];
        mem_q <= mem[dev_addr];
    end
end
always @(posedge clk) begin
    was_memory <= host_addr[16];
    if (host_valid && host_addr[16]) begin
        for (b = 0; b < 4; b = b + 1)
            if (host_write[b]) mem[host_addr[MEM_BITS-1:2]][8*b +: 8] <= host_wdata[8*b +: 8];
        host_q <= mem[host_addr[MEM_BITS-1:2]];
    end
end
assign host_rdata = was_memory ? host_q : reg_rdata;
endmodule
`default_nettype wire
