// What is claimed of the consumer of almaif_core.v, with any memory, any delays, and any host that keeps to the
// rules of the ring: hdl/check proves it by induction, so for all values of the 64-bit indices. Part of that module.

// ---- the host, and what memory says of the ring ----------------------------------------------------

localparam PACKETS = 1 << RING_BITS;
wire                 push;       // free
reg  [63:0]          pushed;     // its write index
reg  [PACKETS-1:0]   filled;     // slots whose header is not INVALID
reg                  seen;       // of the header that was read last
wire [RING_BITS-1:0] slot      = read_index[RING_BITS-1:0];
wire [RING_BITS-1:0] push_slot = pushed[RING_BITS-1:0];
wire                 halt      = rst || stopped;
reg                  past_valid = 0;
integer              i;

always @(posedge clk) begin
    past_valid <= 1;
    if (step && state == POLL) seen <= filled[slot];
    if (halt) begin
        pushed <= 0;
        filled <= 0;
    end else begin
        if (step && state == RETIRE) filled[slot] <= 0;
        if (push && pushed - read_index != PACKETS) begin
            filled[push_slot] <= 1;
            pushed <= pushed + 1;
        end
    end
end

always @* begin
    if (!past_valid) assume (rst);
    if (state == HEADER) assume ((word[7:0] == INVALID) == !seen);
end
always @(posedge clk)
    if (past_valid && $past(!step)) assume (mem_rdata == $past(mem_rdata)); // until it was taken

// ---- ghosts: what was done for this packet ---------------------------------------------------------

reg        unknown, barrier, signalled;
reg [31:0] grid, stores;
always @(posedge clk)
    if (step) case (state)
        POLL: begin unknown <= 0; barrier <= 0; signalled <= 0; stores <= 0; end
        HEADER: begin
            unknown <= word[7:0] != 1 && word[7:0] != 2 && word[7:0] != 3;
            barrier <= word[7:0] == 3;
        end
        GRID:   grid <= word;
        STORE:  stores <= stores + 1;
        SIGNAL: signalled <= 1;
        default: ;
    endcase

wire working = state != POLL && state != HEADER;
wire launch  = working && !barrier && !unknown && state != GRID;
wire inside  = state == LOAD || state == OPERATE || state == MULTIPLY || state == STORE;
wire writes  = mem_valid && mem_write != 0;
wire [ADDR_BITS-1:2] header_at = {{(MEM_BITS - RING_BITS - 6){1'b1}}, slot, 4'd0};
wire in_ring = &mem_addr[MEM_BITS-1:RING_BITS+6];

// ---- claims ----------------------------------------------------------------------------------------

always @* if (past_valid && !halt) begin
    // No more packets than there are slots; exactly those between the indices are there. So none is lost, none is
    // taken twice, and they are taken in order, also where the indices wrap.
    assert (pushed - read_index <= PACKETS);
    for (i = 0; i < PACKETS; i = i + 1)
        assert (filled[i] == (((i - read_index) & (PACKETS - 1)) < pushed - read_index));
    // What it works on is a packet that was pushed, and that is still there.
    if (state == HEADER && seen) assert (filled[slot]);
    if (working) assert (filled[slot]);

    if (state == POLL) assert (mem_addr == header_at); // where it looks for one
    // Of the ring it writes the header of the packet that it retires, with INVALID, and nothing else.
    if (writes && in_ring)
        assert (state == RETIRE && mem_addr == header_at && mem_wdata == INVALID && mem_write == 4'hF);
    if (state == RETIRE) assert (writes && in_ring);

    // It signals when all is done, once, and retires after that.
    if (writes && (state == SIGNAL || state == STORE)) assert (!signalled);
    if (state == RETIRE) assert (signalled || unknown);
    if (state == SIGNAL && launch && !failed) assert (stores == grid);
    if (state == STORE) assert (stores < grid);
end

always @(posedge clk) if (past_valid && $past(!halt) && !halt) begin
    // The read index counts up by one, and only then.
    assert (read_index == $past(read_index) + {63'd0, $past(state == RETIRE && step)});
    // What may be written once was asked for stays so until it is taken.
    if ($past(mem_valid && !mem_ready)) assert (mem_valid && mem_addr == $past(mem_addr) &&
                                                mem_write == $past(mem_write) && mem_wdata == $past(mem_wdata));
end

// What induction needs to know of states that can be.
always @* if (past_valid && !halt) begin
    assert (state <= RETIRE);
    if (working) assert (!unknown || state == RETIRE);
    if (inside || state == NEXT) assert (!signalled && !barrier && !unknown);
    if (inside) assert (!off && !failed && !(&left));
    if (launch) assert (stores + ~left == grid);
    if (launch) assert (stores <= grid);
    if (working && has_signal) assert (!(&signal[MEM_BITS-1:RING_BITS+6]));
    if (state == SIGNAL && launch) assert (failed || &left);
    if (working && state != SIGNAL && state != RETIRE) assert (!signalled);
    if (state == SIGNAL) assert (!signalled);
    if (state == DEP || state == DEP_AT || state == DEP_READ || state == DEP_TEST || state == BARRIER_SIGNAL)
        assert (barrier);
    if (state == GRID || state == KERNEL || state == SIGNAL_AT || state == ARGS || state == ARG_FIRST ||
        state == ARG || state == ARG_LAST)
        assert (!barrier && stores == 0);
    if (state == HEADER || state == GRID) assert (!signalled && stores == 0);
    if (state == HEADER) assert (!barrier && !unknown && !has_signal);
end
