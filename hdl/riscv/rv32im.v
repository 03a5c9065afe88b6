// A small RISC-V core: RV32IM, machine mode only, no interrupts, no CSRs. One instruction after the other: fetch,
// execute, and a cycle more for loads, 32 more for divisions. What it cannot execute, or a memory that says
// `mem_error`, makes it go on at TRAP. fence and wfi do nothing; wfi shows as `sleep` for one cycle.
//
// Memory answers in the next cycle; a word is read or written (mem_write: its bytes) at mem_addr.
`default_nettype none

module rv32im #(
        parameter [31:0] RESET = 32'h80001000,
        parameter [31:0] TRAP  = 32'h80001040
) (
        input  wire        clk,
        input  wire        rst,
        output reg         mem_valid,
        output reg  [31:0] mem_addr,
        output reg  [31:0] mem_wdata,
        output reg  [3:0]  mem_write,
        input  wire [31:0] mem_rdata,
        input  wire        mem_error,
        output reg         sleep
);

localparam FETCH = 3'd0, EXECUTE = 3'd1, LOAD = 3'd2, STORE = 3'd3, DIVIDE = 3'd4, BEGIN_ = 3'd5;

reg [2:0]  state;
reg [31:0] pc;
reg [31:0] x [0:31];
reg [31:0] instruction;

// The instruction that executes: what the memory answers, kept for the cycles that follow.
wire [31:0] i      = state == EXECUTE ? mem_rdata : instruction;
wire [6:0]  opcode = i[6:0];
wire [4:0]  rd     = i[11:7];
wire [2:0]  funct3 = i[14:12];
wire [6:0]  funct7 = i[31:25];
wire [31:0] a      = i[19:15] == 0 ? 32'd0 : x[i[19:15]];
wire [31:0] b      = i[24:20] == 0 ? 32'd0 : x[i[24:20]];

wire [31:0] imm_i = {{20{i[31]}}, i[31:20]};
wire [31:0] imm_s = {{20{i[31]}}, i[31:25], i[11:7]};
wire [31:0] imm_b = {{20{i[31]}}, i[7], i[30:25], i[11:8], 1'b0};
wire [31:0] imm_j = {{12{i[31]}}, i[19:12], i[20], i[30:21], 1'b0};

localparam OP = 7'h33, OP_IMM = 7'h13, LUI = 7'h37, AUIPC = 7'h17, JAL = 7'h6f, JALR = 7'h67,
           BRANCH = 7'h63, LOADS = 7'h03, STORES = 7'h23, FENCE = 7'h0f, SYSTEM = 7'h73;

// ---- arithmetic ---------------------------------------------------------------------------------

wire [31:0] second = opcode == OP ? b : imm_i;
wire        minus  = opcode == OP && funct7[5];
// On its own: beside what is unsigned it would be a shift without sign.
wire signed [31:0] arithmetic = $signed(a) >>> second[4:0];
reg  [31:0] alu;
always @* begin
        case (funct3)
        3'd0: alu = minus ? a - second : a + second;
        3'd1: alu = a << second[4:0];
        3'd2: alu = {31'd0, $signed(a) < $signed(second)};
        3'd3: alu = {31'd0, a < second};
        3'd4: alu = a ^ second;
        3'd5: alu = i[30] ? arithmetic : a >> second[4:0];
        3'd6: alu = a | second;
        default: alu = a & second;
        endcase
end

// mul, mulh, mulhsu, mulhu
wire signed [32:0] left  = {funct3[1:0] != 2'd3 && a[31], a};
wire signed [32:0] right = {funct3[1:0] == 2'd1 && b[31], b};
wire signed [65:0] product = left * right;
wire [31:0] multiplied = funct3[1:0] == 2'd0 ? product[31:0] : product[63:32];

// div, divu, rem, remu: of magnitudes, a bit a cycle
reg  [31:0] quotient, divisor;
reg  [31:0] remainder;
reg  [5:0]  left_bits;
reg         negate;
wire        is_signed = !funct3[0];
wire [31:0] size_a = is_signed && a[31] ? -a : a;
wire [31:0] size_b = is_signed && b[31] ? -b : b;
wire [32:0] next_remainder = {remainder, quotient[31]};
wire        fits = next_remainder >= {1'b0, divisor};
wire [31:0] divided = funct3[1] ? remainder : quotient;

reg taken;
always @* begin
        case (funct3)
        3'd0: taken = a == b;
        3'd1: taken = a != b;
        3'd4: taken = $signed(a) < $signed(b);
        3'd5: taken = $signed(a) >= $signed(b);
        3'd6: taken = a < b;
        default: taken = a >= b;
        endcase
end

// ---- what is legal ------------------------------------------------------------------------------

wire shift_ok = funct3 == 3'd1 ? funct7 == 7'h00
                : funct3 == 3'd5 ? funct7 == 7'h00 || funct7 == 7'h20 : 1'b1;
wire op_ok = funct7 == 7'h00 || funct7 == 7'h01 ||
             (funct7 == 7'h20 && (funct3 == 3'd0 || funct3 == 3'd5));
wire legal = opcode == OP ? op_ok
             : opcode == OP_IMM ? shift_ok
             : opcode == BRANCH ? funct3 != 3'd2 && funct3 != 3'd3
             : opcode == LOADS ? funct3 != 3'd3 && funct3 < 3'd6
             : opcode == STORES ? funct3 < 3'd3
             : opcode == JALR ? funct3 == 3'd0
             : opcode == SYSTEM ? i == 32'h10500073
             : opcode == LUI || opcode == AUIPC || opcode == JAL || opcode == FENCE;

wire [31:0] address = a + (opcode == STORES ? imm_s : imm_i);
wire aligned = funct3[1:0] == 2'd0 || (funct3[1:0] == 2'd1 && !address[0]) ||
               (funct3[1:0] == 2'd2 && address[1:0] == 2'd0);

wire [31:0] shifted = mem_rdata >> {mem_low, 3'd0};
reg  [1:0]  mem_low; // of the address of a load
reg  [31:0] loaded;
always @* begin
        case (funct3)
        3'd0: loaded = {{24{shifted[7]}}, shifted[7:0]};
        3'd1: loaded = {{16{shifted[15]}}, shifted[15:0]};
        3'd4: loaded = {24'd0, shifted[7:0]};
        3'd5: loaded = {16'd0, shifted[15:0]};
        default: loaded = mem_rdata;
        endcase
end

// ---- one state after the other ------------------------------------------------------------------

task fetch(input [31:0] at);
begin
        pc <= at;
        mem_valid <= 1'b1;
        mem_write <= 4'd0;
        mem_addr <= at;
        state <= FETCH;
end
endtask

task set(input [31:0] value);
        if (rd != 5'd0)
                x[rd] <= value;
endtask

wire [31:0] after = pc + 32'd4;

always @(posedge clk) begin
        mem_valid <= 1'b0;
        sleep <= 1'b0;
        if (rst) begin
                state <= BEGIN_;
                mem_write <= 4'd0;
        end else case (state)
        BEGIN_: fetch(RESET);
        FETCH: state <= EXECUTE;
        EXECUTE: begin
                instruction <= mem_rdata;
                if (mem_error || !legal || ((opcode == LOADS || opcode == STORES) && !aligned))
                        fetch(TRAP);
                else case (opcode)
                OP:
                        if (funct7 == 7'h01 && funct3[2]) begin
                                quotient <= size_a;
                                divisor <= size_b;
                                remainder <= 32'd0;
                                left_bits <= 6'd32;
                                negate <= is_signed &&
                                          (funct3[1] ? a[31] : a[31] != b[31] && b != 32'd0);
                                state <= DIVIDE;
                        end else begin
                                set(funct7 == 7'h01 ? multiplied : alu);
                                fetch(after);
                        end
                OP_IMM: begin
                        set(alu);
                        fetch(after);
                end
                LUI: begin
                        set({i[31:12], 12'd0});
                        fetch(after);
                end
                AUIPC: begin
                        set(pc + {i[31:12], 12'd0});
                        fetch(after);
                end
                JAL: begin
                        set(after);
                        fetch(pc + imm_j);
                end
                JALR: begin
                        set(after);
                        fetch((a + imm_i) & ~32'd1);
                end
                BRANCH: fetch(taken ? pc + imm_b : after);
                LOADS: begin
                        mem_valid <= 1'b1;
                        mem_addr <= {address[31:2], 2'd0};
                        mem_low <= address[1:0];
                        left_bits <= 6'd0;
                        state <= LOAD;
                end
                STORES: begin
                        mem_valid <= 1'b1;
                        mem_addr <= {address[31:2], 2'd0};
                        mem_wdata <= b << {address[1:0], 3'd0};
                        mem_write <= (funct3 == 3'd0 ? 4'd1 : funct3 == 3'd1 ? 4'd3 : 4'd15)
                                     << address[1:0];
                        left_bits <= 6'd0;
                        state <= STORE;
                end
                SYSTEM: begin
                        sleep <= 1'b1;
                        fetch(after);
                end
                default: fetch(after);
                endcase
        end
        LOAD: begin
                left_bits <= 6'd1;
                if (left_bits[0]) begin
                        if (mem_error)
                                fetch(TRAP);
                        else begin
                                set(loaded);
                                fetch(after);
                        end
                end
        end
        STORE: begin
                mem_write <= 4'd0;
                left_bits <= 6'd1;
                if (left_bits[0])
                        fetch(mem_error ? TRAP : after);
        end
        default: // DIVIDE
                if (left_bits != 6'd0) begin
                        left_bits <= left_bits - 6'd1;
                        remainder <= fits ? next_remainder[31:0] - divisor : next_remainder[31:0];
                        quotient <= {quotient[30:0], fits};
                end else begin
                        set(negate ? -divided : divided);
                        fetch(after);
                end
        endcase
end

endmodule

`default_nettype wire
