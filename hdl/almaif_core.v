// An AlmaIF v2 accelerator: control registers, the consumer of the ring, and four kernels. The numbers are those
// of include/spancl/almaif.h; docs/internals/almaif.md says what they mean.
//
// Memory of 2^MEM_BITS bytes stands beside it: data from 0 on, the ring of 2^RING_BITS packets at its end; so that
// no address needs an adder. Addresses of signals, arguments and buffers are relative to the start of data.
// completion=zero, index=set, args=natural. Launches have one dimension. Kernels: 0 copy.i8, 1 add.i32,
// 2 mul.i32, 9 abs.f32; what they are given that is not in the data fails.
`default_nettype none

module almaif_core #(
    parameter MEM_BITS  = 13,
    parameter RING_BITS = 3,
    parameter [31:0] MEM_START = 32'h10000 // where the host sees the memory
) (
    input  wire                clk,
    input  wire                rst,
    // control registers: one access a cycle, read data one cycle later
    input  wire                reg_valid,
    input  wire                reg_write,
    input  wire [9:2]          reg_addr,
    input  wire [31:0]         reg_wdata,
    output reg  [31:0]         reg_rdata,
    // memory: read data one cycle later; `mem_ready`: this cycle's access is taken
    output reg                 mem_valid,
    output reg  [3:0]          mem_write,
    output reg  [MEM_BITS-1:2] mem_addr,
    output reg  [31:0]         mem_wdata,
    input  wire [31:0]         mem_rdata,
    input  wire                mem_ready,
    output wire                irq         // a packet retired
);

localparam RING_BYTES = 64 << RING_BITS, DATA_BYTES = (1 << MEM_BITS) - RING_BYTES;
localparam [31:0] SUCCESS = 32'd0, FAILURE = 32'hFFFFFFFF, INVALID = 32'd1, PENDING = 32'd1;

// ---- control registers ---------------------------------------------------------------------------

reg        running;
reg [63:0] write_index, read_index;

always @(posedge clk) begin
    if (rst) running <= 0;
    else if (reg_valid && reg_write && reg_addr == 8'h80) running <= reg_wdata[1];
    if (!running) write_index <= 0;
    else if (reg_valid && reg_write && reg_addr == 8'h42) write_index[31:0] <= reg_wdata;
    else if (reg_valid && reg_write && reg_addr == 8'h43) write_index[63:32] <= reg_wdata;
end

always @(posedge clk)
    if (reg_valid)
        case (reg_addr)
            8'h00:   reg_rdata <= {29'd0, !running, 2'd0};
            8'h40:   reg_rdata <= read_index[31:0];
            8'h41:   reg_rdata <= read_index[63:32];
            8'h42:   reg_rdata <= write_index[31:0];
            8'h43:   reg_rdata <= write_index[63:32];
            8'hC0:   reg_rdata <= 32'h5350;               // DEVICE_CLASS
            8'hC1:   reg_rdata <= 32'hF;                  // DEVICE_ID
            8'hC2:   reg_rdata <= 32'd2;                  // INTERFACE_VERSION
            8'hC3:   reg_rdata <= 32'd1;                  // CORE_COUNT
            8'hC8:   reg_rdata <= RING_BYTES;             // QUEUE_SIZE
            8'hCA:   reg_rdata <= MEM_START + DATA_BYTES; // QUEUE_START
            8'hCC:   reg_rdata <= DATA_BYTES;             // DATA_SIZE
            8'hCE:   reg_rdata <= MEM_START;              // DATA_START
            8'hD2:   reg_rdata <= {16'd0, 16'd4};         // KERNEL_COUNT, KERNEL_IDS: 0,
            8'hD3:   reg_rdata <= {16'd2, 16'd1};         // 1, 2,
            8'hD4:   reg_rdata <= {16'd0, 16'd9};         // 9
            default: reg_rdata <= 0;
        endcase

// ---- the consumer --------------------------------------------------------------------------------

// A state that reads says what; the state after it has the word.
localparam [4:0] POLL = 0, HEADER = 1, GRID = 2, KERNEL = 3, SIGNAL_AT = 4, ARGS = 5, ARG_0 = 6, ARG_1 = 7,
                 ARG_2 = 8, ARG_LAST = 9, NEXT = 10, LOAD = 11, OPERATE = 12, MULTIPLY = 13, STORE = 14,
                 DEP = 15, DEP_AT = 16, DEP_READ = 17, DEP_TEST = 18, BARRIER_SIGNAL = 19, SIGNAL = 20,
                 RETIRE = 21;

reg [4:0]          state;
reg [3:0]          field;   // of a barrier, in words
reg [MEM_BITS-1:0] x, y, z; // operands and result; y is where arguments are, x a dependency
reg [MEM_BITS-1:2] signal;
reg                has_signal, failed;
reg [1:0]          kernel;  // 0 copy, 1 add, 2 mul, 3 abs
reg [31:0]         left;    // work-items to go
reg [31:0]         operand, factor, result;

wire [31:0] word     = mem_rdata;
wire        binary   = kernel[0] ^ kernel[1];
wire [31:0] sum      = operand + (state == MULTIPLY ? result : word);
wire [2:0]  step     = kernel == 0 ? 3'd1 : 3'd4;
wire [7:0]  source   = operand >> {x[1:0], 3'd0};
// The top of the memory is the ring.
wire        in_data   = word[31:MEM_BITS] == 0 && !(&word[MEM_BITS-1:RING_BITS+6]);
wire        off      = &x[MEM_BITS-1:RING_BITS+6] || &z[MEM_BITS-1:RING_BITS+6] ||
                       (binary && &y[MEM_BITS-1:RING_BITS+6]) ||
                       (kernel != 0 && (x[1:0] | z[1:0] | (binary ? y[1:0] : 2'd0)) != 0);

reg [3:0]   wanted; // field of the packet
wire [MEM_BITS-1:2] packet = {{(MEM_BITS - RING_BITS - 6){1'b1}}, read_index[RING_BITS-1:0], wanted};

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
        ARG_0, ARG_1, ARG_2, LOAD: mem_addr = y[MEM_BITS-1:2];
        NEXT, DEP_READ:            mem_addr = x[MEM_BITS-1:2];
        STORE: begin
            mem_addr  = z[MEM_BITS-1:2];
            mem_write = kernel == 0 ? 4'd1 << z[1:0] : 4'hF;
            mem_wdata = kernel == 0 ? {4{source}} : result;
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

always @(posedge clk)
    if (rst || !running) begin
        state <= POLL;
        read_index <= 0;
    end else if (!mem_valid || mem_ready)
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

            GRID: begin left <= word; state <= KERNEL; end
            KERNEL: begin
                kernel <= word[3] ? 2'd3 : word[1:0];
                if (word != 0 && word != 1 && word != 2 && word != 9) failed <= 1;
                state <= SIGNAL_AT;
            end
            SIGNAL_AT: begin
                signal <= word[MEM_BITS-1:2];
                has_signal <= word != 0 && in_data;
                state <= ARGS;
            end
            ARGS: begin
                y <= word[MEM_BITS-1:0];
                if (!in_data) failed <= 1;
                state <= ARG_0;
            end
            ARG_0: begin y <= y + 8; state <= ARG_1; end
            ARG_1: begin
                x <= word[MEM_BITS-1:0];
                if (!in_data || word == 0) failed <= 1;
                y <= y + 8;
                state <= ARG_2;
            end
            ARG_2: begin
                z <= word[MEM_BITS-1:0];
                if (!in_data || word == 0) failed <= 1;
                state <= ARG_LAST;
            end
            ARG_LAST: begin
                y <= z;
                if (binary) begin
                    z <= word[MEM_BITS-1:0];
                    if (!in_data || word == 0) failed <= 1;
                end
                state <= NEXT;
            end

            NEXT:
                if (failed || left == 0) state <= SIGNAL;
                else if (off) begin failed <= 1; state <= SIGNAL; end
                else state <= LOAD;
            LOAD: begin operand <= word; state <= OPERATE; end
            OPERATE: begin
                factor <= word;
                result <= kernel == 1 ? sum : kernel == 3 ? {1'b0, operand[30:0]} : 32'd0;
                state <= kernel == 2 ? MULTIPLY : STORE;
            end
            MULTIPLY: begin
                if (factor[0]) result <= sum;
                operand <= operand << 1;
                factor <= factor >> 1;
                if (factor == 0) state <= STORE;
            end
            STORE: begin
                x <= x + step;
                y <= y + step;
                z <= z + step;
                left <= left - 1;
                state <= NEXT;
            end

            DEP: state <= field == 14 ? BARRIER_SIGNAL : DEP_AT;
            DEP_AT: begin
                x <= word[MEM_BITS-1:0];
                if (word != 0 && in_data) state <= DEP_READ;
                else begin
                    if (word != 0) failed <= 1;
                    field <= field + 2;
                    state <= DEP;
                end
            end
            DEP_READ: state <= DEP_TEST;
            DEP_TEST:
                if (word == PENDING) state <= DEP_READ;
                else begin
                    if (word != SUCCESS) failed <= 1;
                    field <= field + 2;
                    state <= DEP;
                end
            BARRIER_SIGNAL: begin
                signal <= word[MEM_BITS-1:2];
                has_signal <= word != 0 && in_data;
                state <= SIGNAL;
            end

            SIGNAL: state <= RETIRE;
            RETIRE: begin
                read_index <= read_index + 1;
                state <= POLL;
            end
            default: state <= POLL;
        endcase
endmodule
`default_nettype wire
