// An AlmaIF v2 accelerator: control registers, the consumer of the ring, and four kernels. The numbers are those
// of include/spancl/almaif.h; docs/internals/almaif.md says what they mean.
//
// Memory of 2^MEM_BITS bytes at `base`, a multiple of its size, stands beside it: data from 0 on, the ring of
// 2^RING_BITS packets at its end; so that no address needs an adder. Addresses of signals, arguments and buffers have
// 32 bits. Without BUS_MASTER they are relative to the start of data; with it they are bus addresses, and what
// is not in that memory is somebody else's: the memory port speaks of the whole bus.
// completion=zero, index=set, args=natural. Launches have one dimension. Kernels: 0 copy.i8, 1 add.i32,
// 2 mul.i32, 9 abs.f32; what they are given that is not in the data (or is in the ring) fails.
//
// It is written for few LUTs: what is loaded and counted goes through one adder, whose input chooses; counters count
// up.
`default_nettype none

module almaif_core #(
    parameter MEM_BITS   = 13,
    parameter RING_BITS  = 3,
    parameter BUS_MASTER = 0,
    parameter ADDR_BITS  = BUS_MASTER ? 32 : MEM_BITS // of addresses that it works with
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire [31:0]          base, // where the host sees the memory; constant
    // control registers: one access a cycle, read data one cycle later
    input  wire                 reg_valid,
    input  wire                 reg_write,
    input  wire [9:2]           reg_addr,
    input  wire [31:0]          reg_wdata,
    output reg  [31:0]          reg_rdata,
    // memory: `mem_ready`: this cycle's access is taken, and what it reads is there one cycle later
    output reg                  mem_valid,
    output reg  [3:0]           mem_write,
    output reg  [ADDR_BITS-1:2] mem_addr,
    output reg  [31:0]          mem_wdata,
    input  wire [31:0]          mem_rdata,
    input  wire                 mem_ready,
    output wire                 irq // a packet retired
);

localparam RING_BYTES = 64 << RING_BITS, DATA_BYTES = (1 << MEM_BITS) - RING_BYTES;
localparam [31:0] SUCCESS = 32'd0, FAILURE = 32'hFFFFFFFF, INVALID = 32'd1, PENDING = 32'd1;

// ---- control registers ---------------------------------------------------------------------------

reg        stopped;
reg [63:0] write_index, read_index;

always @(posedge clk) begin
    if (rst) stopped <= 1;
    else if (reg_valid && reg_write && reg_addr == 8'h80) stopped <= !reg_wdata[1];
    if (stopped) write_index <= 0;
    else if (reg_valid && reg_write && reg_addr == 8'h42) write_index[31:0] <= reg_wdata;
    else if (reg_valid && reg_write && reg_addr == 8'h43) write_index[63:32] <= reg_wdata;
end

always @(posedge clk)
    if (reg_valid)
        case (reg_addr)
            8'h00:   reg_rdata <= {29'd0, stopped, 2'd0};
            8'h40:   reg_rdata <= read_index[31:0];
            8'h41:   reg_rdata <= read_index[63:32];
            8'h42:   reg_rdata <= write_index[31:0];
            8'h43:   reg_rdata <= write_index[63:32];
            8'hC0:   reg_rdata <= 32'h5350;          // DEVICE_CLASS
            8'hC1:   reg_rdata <= 32'hF;             // DEVICE_ID
            8'hC2:   reg_rdata <= 32'd2;             // INTERFACE_VERSION
            8'hC3:   reg_rdata <= 32'd1;             // CORE_COUNT
            8'hC8:   reg_rdata <= RING_BYTES;        // QUEUE_SIZE
            8'hCA:   reg_rdata <= base | DATA_BYTES; // QUEUE_START
            8'hCC:   reg_rdata <= DATA_BYTES;        // DATA_SIZE
            8'hCE:   reg_rdata <= base;              // DATA_START
            8'hD0:   reg_rdata <= BUS_MASTER != 0;   // FEATURES
            8'hD2:   reg_rdata <= {16'd0, 16'd4};    // KERNEL_COUNT, KERNEL_IDS: 0,
            8'hD3:   reg_rdata <= {16'd2, 16'd1};    // 1, 2,
            8'hD4:   reg_rdata <= {16'd0, 16'd9};    // 9
            default: reg_rdata <= 0;
        endcase

// ---- the consumer --------------------------------------------------------------------------------

// A state that reads says what; the state after it has the word.
localparam [4:0] POLL = 0, HEADER = 1, GRID = 2, KERNEL = 3, SIGNAL_AT = 4, ARGS = 5, ARG_FIRST = 6, ARG = 7,
                 ARG_LAST = 8, NEXT = 9, LOAD = 10, OPERATE = 11, MULTIPLY = 12, STORE = 13, DEP = 14,
                 DEP_AT = 15, DEP_READ = 16, DEP_TEST = 17, BARRIER_SIGNAL = 18, SIGNAL = 19, RETIRE = 20;

reg [4:0]           state;
reg [3:0]           field;   // of a barrier, or of arguments, in words
reg [ADDR_BITS-1:0] x, y, z; // the buffers; z is where arguments are until the third is known, x a dependency
reg [ADDR_BITS-1:2] signal;
reg                 has_signal, failed;
reg [1:0]           kernel;  // 0 copy, 1 add, 2 mul, 3 abs
reg [31:0]          left;    // work-items to go, less one, counted up from its complement
reg [31:0]          operand, factor, result;

wire [31:0] word   = mem_rdata;
wire        step   = !mem_valid || mem_ready; // this cycle ends the state
wire        binary = kernel[0] ^ kernel[1];
wire        bytes  = kernel == 0;
wire [7:0]  source = operand >> {x[1:0], 3'd0};

// The top of the memory is the ring; an address of 32 bits, and one of those that are worked with.
wire ring_word, ring_x, ring_y, ring_z, word_fits;
generate if (BUS_MASTER) begin : bus
    wire [31:0] ring = base | DATA_BYTES;
    assign ring_word = word[31:RING_BITS+6] == ring[31:RING_BITS+6];
    assign ring_x    = x[31:RING_BITS+6] == ring[31:RING_BITS+6];
    assign ring_y    = y[31:RING_BITS+6] == ring[31:RING_BITS+6];
    assign ring_z    = z[31:RING_BITS+6] == ring[31:RING_BITS+6];
    assign word_fits = 1;
end else begin : alone
    assign ring_word = &word[MEM_BITS-1:RING_BITS+6];
    assign ring_x    = &x[MEM_BITS-1:RING_BITS+6];
    assign ring_y    = &y[MEM_BITS-1:RING_BITS+6];
    assign ring_z    = &z[MEM_BITS-1:RING_BITS+6];
    assign word_fits = word[31:MEM_BITS] == 0;
end endgenerate
wire in_data = word_fits && !ring_word;
wire off     = ring_x || ring_y || (binary && ring_z) ||
               (!bytes && (x[1:0] | y[1:0] | (binary ? z[1:0] : 2'd0)) != 0);
wire nothing = word == 0;

wire [3:0]           next_dep = field == 10 ? 14 : field + 2; // behind the fifth is nothing
reg  [3:0]           wanted; // field of the packet
wire [ADDR_BITS-1:2] packet;
wire [MEM_BITS-1:2]  packet_at = {{(MEM_BITS - RING_BITS - 6){1'b1}}, read_index[RING_BITS-1:0], wanted};
generate if (BUS_MASTER) assign packet = {base[31:MEM_BITS], packet_at};
else                     assign packet = packet_at;
endgenerate

assign irq = state == RETIRE && mem_ready;

always @*
    case (state)
        HEADER:             wanted = 3;
        GRID:               wanted = 8;
        KERNEL:             wanted = 14;
        SIGNAL_AT:          wanted = 10;
        DEP:                wanted = field;
        default:            wanted = 0;
    endcase

always @* begin
    mem_valid = 1;
    mem_write = 0;
    mem_addr  = packet;
    mem_wdata = INVALID;
    case (state)
        POLL, HEADER, GRID, KERNEL, SIGNAL_AT, DEP: ;
        ARG_FIRST, ARG:  mem_addr = z[ADDR_BITS-1:2];
        NEXT, DEP_READ:  mem_addr = x[ADDR_BITS-1:2];
        LOAD:            mem_addr = y[ADDR_BITS-1:2];
        STORE: begin
            mem_addr  = binary ? z[ADDR_BITS-1:2] : y[ADDR_BITS-1:2];
            mem_write = bytes ? 4'd1 << y[1:0] : 4'hF;
            mem_wdata = bytes ? {4{source}} : result;
        end
        SIGNAL: begin
            mem_valid = has_signal;
            mem_addr  = signal;
            mem_write = 4'hF;
            mem_wdata = failed ? FAILURE : SUCCESS;
        end
        RETIRE: mem_write = 4'hF;
        default: mem_valid = 0;
    endcase
end

// ---- numbers: load or count ----------------------------------------------------------------------

// One element on: a byte, or a word.
function [ADDR_BITS-1:0] next;
    input                 load;
    input [ADDR_BITS-1:0] loaded, at;
    input                 bytewise;
    reg   [2:0]           low;
    begin
        low  = at[1:0] + 3'd1;
        next = {(load ? loaded[ADDR_BITS-1:2] : at[ADDR_BITS-1:2]) +
                    {{(ADDR_BITS - 3){1'b0}}, !load && (!bytewise || low[2])},
                load ? loaded[1:0] : bytewise ? low[1:0] : at[1:0]};
    end
endfunction

wire [ADDR_BITS-1:0] word_address = word[ADDR_BITS-1:0];
wire                 stored = state == STORE;
// The word read before `field` of the arguments: addresses have two, of which the upper one is 0.
wire                 take_x = state == ARG && field == 1, take_y = state == ARG && field == 3;
wire                 take_z = state == ARG && field == 5;

// result = the first operand + (the second one, or nothing, or what was there). What is not to be added up is not
// clocked in: so the carry chain can take the operand as it is.
wire        first_step = state == OPERATE;
wire [31:0] augend     = {operand[31] && !(first_step && kernel[1]), operand[30:0]};
wire [31:0] addend     = !first_step ? result : kernel[1] ? 32'd0 : word;
wire [31:0] sum        = addend - ~augend - 1; // their sum, said so that yosys takes that input of the chain

always @(posedge clk) if (step) begin
    if (state == GRID || stored) left <= (stored ? left : ~word) + {31'd0, stored};
    if (take_x || state == DEP_AT || stored) x <= next(!stored, word_address, x, bytes);
    if (take_y || stored) y <= next(!stored, word_address, y, bytes);
    if (state == ARGS || state == ARG_FIRST || state == ARG || stored)
        z <= next(state == ARGS || take_z, word_address, z, 1'b0);
    if (state == LOAD) operand <= word;
    else if (state == MULTIPLY) operand <= operand << 1;
    if (first_step) factor <= word;
    else if (state == MULTIPLY) factor <= factor >> 1;
    if (first_step && !kernel[0]) result <= 0;
    else if (first_step || (state == MULTIPLY && factor[0])) result <= sum;
end

// ---- what comes next -----------------------------------------------------------------------------

always @(posedge clk)
    if (rst || stopped) begin
        state <= POLL;
        read_index <= 0;
    end else if (step)
        case (state)
            POLL: begin
                failed <= 0;
                has_signal <= 0;
                field <= 2;
                state <= HEADER;
            end
            HEADER:
                case (word[7:0])
                    8'd1: state <= POLL;
                    8'd2: begin failed <= word[31:16] != 16'd1; state <= GRID; end
                    8'd3: state <= DEP;
                    default: state <= RETIRE;
                endcase

            GRID: state <= KERNEL;
            KERNEL: begin
                kernel <= word[3] ? 2'd3 : word[1:0];
                if (word[31:4] != 0 || !(word[3:0] == 0 || word[3:0] == 1 || word[3:0] == 2 || word[3:0] == 9))
                    failed <= 1;
                state <= SIGNAL_AT;
            end
            SIGNAL_AT: begin
                signal <= word[ADDR_BITS-1:2];
                has_signal <= !nothing && in_data;
                state <= ARGS;
            end
            ARGS: begin
                if (!in_data) failed <= 1;
                field <= 0;
                state <= ARG_FIRST;
            end
            ARG_FIRST: begin
                field <= 1;
                state <= ARG;
            end
            ARG: begin
                if (field[0] ? !in_data || nothing : !nothing) failed <= 1;
                field <= field + 1;
                if (field == (binary ? 5 : 3)) state <= ARG_LAST;
            end
            ARG_LAST: begin
                if (!nothing) failed <= 1;
                state <= NEXT;
            end

            NEXT:
                if (failed || &left) state <= SIGNAL;
                else if (off) begin failed <= 1; state <= SIGNAL; end
                else state <= LOAD;
            LOAD: state <= OPERATE;
            OPERATE: state <= kernel == 2 ? MULTIPLY : STORE;
            MULTIPLY: if (factor == 0) state <= STORE;
            STORE: state <= NEXT;

            DEP: state <= field == 14 ? BARRIER_SIGNAL : DEP_AT;
            DEP_AT:
                if (!nothing && in_data) state <= DEP_READ;
                else begin
                    if (!nothing) failed <= 1;
                    field <= next_dep;
                    state <= DEP;
                end
            DEP_READ: state <= DEP_TEST;
            DEP_TEST:
                if (word == PENDING) state <= DEP_READ;
                else begin
                    if (word != SUCCESS) failed <= 1;
                    field <= next_dep;
                    state <= DEP;
                end
            BARRIER_SIGNAL: begin
                signal <= word[ADDR_BITS-1:2];
                has_signal <= !nothing && in_data;
                state <= SIGNAL;
            end

            SIGNAL: state <= RETIRE;
            RETIRE: begin
                read_index <= read_index + 1;
                state <= POLL;
            end
            default: state <= POLL;
        endcase

`ifdef FORMAL
`include "formal.vh"
`endif
endmodule
`default_nettype wire
