// tests/emulator/cuda/sync_test.cpp - locks, lock-free structures, barriers, groups, votes
#include <algorithm>
#include <numeric>

#include "cuda_case.hpp"
#include "numbers.hpp"

using namespace ptxgen::test;

TEST_CASE("cuda: spin locks between the lanes of a warp") {
  run_case({"spin_lock.cu"}, [](CudaRun& run) {
    const auto zero = [&] { return run.input(std::vector<std::int32_t>{0}); };
    const auto mutex = zero(), counter = zero();
    const auto sum = run.input(std::vector<std::int64_t>{0});
    run.launch("spin_lock", {2}, {64}, mutex, counter, sum);
    run.check_equal(counter, {128});
    run.check_equal(sum, {127 * 128 / 2});
    run.check_equal(mutex, {0});

    const std::size_t accounts = 12, count = 150;
    const auto moves = run.dice.integers<std::int32_t>(2 * count, 0, as_int(accounts) - 1);
    const auto mutexes = run.input(std::vector<std::int32_t>(accounts));
    const auto balances = run.input(std::vector<std::int32_t>(accounts, 100));
    run.launch("transfers", {3}, {64}, mutexes, balances, run.input(moves), as_int(count));
    std::vector<std::int32_t> expected(accounts, 100);
    for (std::size_t i = 0; i < count; ++i) {
      --expected[at(moves[2 * i])];
      ++expected[at(moves[2 * i + 1])];
    }
    run.check_equal(balances, expected);

    const auto value = zero(), other = run.input(std::vector<std::int32_t>{1});
    const auto tickets = zero(), serving = zero(), gate = zero();
    run.launch("try_lock", {1}, {64}, gate, value, tickets, serving, other);
    std::uint32_t chain = 1;
    for (int i = 0; i < 64; ++i) chain = chain * 3 + 1;
    run.check_equal(value, {128});
    run.check_equal(other, {static_cast<std::int32_t>(chain)});
    run.check_equal(serving, {64});
  });
}

TEST_CASE("cuda: lock-free queue") {
  run_case({"queue.cu"}, [](CudaRun& run) {
    const std::size_t slots = 32, threads = 128, items = 5, values = threads / 2 * items;
    std::vector<std::uint32_t> ring(2 * slots);  // turn, value
    for (std::size_t i = 0; i < slots; ++i) ring[2 * i] = as_u32(i);
    const auto device_ring = run.input(ring);
    const auto head_tail = run.input(std::vector<std::uint32_t>{0, 0});
    const auto taken = run.input(std::vector<std::int32_t>(values));
    const auto sums = run.input(std::vector<std::uint32_t>{0, 0});
    run.launch("queue", {2}, {threads / 2}, device_ring, as_u32(slots - 1), head_tail,
               as_int(items), taken, sums);
    run.launch("drain", {1}, {1}, device_ring, as_u32(slots - 1), head_tail, taken, sums);
    // Every item was refused once or taken out once, and what went in came out.
    run.check_equal(taken, std::vector<std::int32_t>(values, 1));
    const auto totals = run.read(sums);
    run.check_values<std::uint32_t>({totals[0]}, {totals[1]});
    run.check_true(totals[0] > 0, "something went through the queue");
  });
}

TEST_CASE("cuda: lock-free stack") {
  run_case({"stack.cu"}, [](CudaRun& run) {
    const std::size_t nodes = 192;
    const auto top = run.input(std::vector<std::uint64_t>{0});
    const auto next = run.output<std::uint32_t>(nodes);
    const auto owned = run.input(std::vector<std::int32_t>(nodes));
    run.launch("stack_push", {3}, {64}, top, next);
    run.launch("stack_churn", {2}, {48}, top, next, owned);
    auto where = run.read(owned);
    const auto links = run.read(next);
    std::size_t left = 0;
    for (auto node = static_cast<std::uint32_t>(run.read(top)[0]); node != 0 && left <= nodes;
         node = links[node - 1]) {
      ++where[node - 1];
      ++left;
    }
    // Each node is on the stack or owned by one thread; each thread found two.
    run.check_values(where, std::vector<std::int32_t>(nodes, 1));
    run.check_values<std::size_t>({left}, {nodes - 96});
  });
}

TEST_CASE("cuda: blocks that wait for each other") {
  run_case({"grid_barrier.cu"}, [](CudaRun& run) {
    const std::size_t n = 4 * 32, rounds = 5;
    auto now = run.dice.integers<std::uint32_t>(n, 0, 1000);
    const auto a = run.input(now), b = run.output<std::uint32_t>(n);
    const auto arrived = run.input(std::vector<std::uint32_t>{0});
    const auto round = run.input(std::vector<std::uint32_t>{0});
    run.launch("grid_barrier", {4}, {32}, a, b, as_int(rounds), arrived, round);
    for (std::size_t r = 0; r < rounds; ++r) {
      std::vector<std::uint32_t> next(n);
      for (std::size_t i = 0; i < n; ++i)
        next[i] = now[(i + n - 1) % n] + now[i] + now[(i + 1) % n];
      now = next;
    }
    run.check_equal(rounds % 2 == 0 ? a : b, now);
    run.check_equal(round, {as_u32(rounds)});
  });
}

TEST_CASE("cuda: named barriers and barriers that vote") {
  run_case({"named_barriers.cu"}, [](CudaRun& run) {
    const std::size_t batches = 7;
    const auto in = run.dice.integers<std::int32_t>(batches * 32, -100, 100);
    const auto out = run.output<std::int32_t>(32);
    run.launch("named_barriers", {1}, {64}, run.input(in), out, as_int(batches));
    std::vector<std::int32_t> expected(32);
    for (std::size_t i = 0; i < batches * 32; ++i) {
      std::int32_t& sum = expected[31 - i % 32];
      sum = sum * 3 + in[i] * 2;
    }
    run.check_equal(out, expected);

    for (const std::int32_t special : {0, 77, -100}) {
      auto votes = run.dice.integers<std::int32_t>(100, -50, 50);
      votes[63] = special;
      const auto results = run.output<std::int32_t>(300);
      run.launch("voting_barriers", {1}, {100}, run.input(votes), results);
      const auto found = run.read(results);
      const auto count = std::count_if(votes.begin(), votes.end(), [](int v) { return v > 0; });
      std::vector<std::int32_t> actual, wanted;
      for (std::size_t i = 0; i < 100; ++i) {
        actual.insert(actual.end(),
                      {found[3 * i], found[3 * i + 1] != 0 ? 1 : 0, found[3 * i + 2] != 0 ? 1 : 0});
        wanted.insert(wanted.end(), {static_cast<std::int32_t>(count), special != -100 ? 1 : 0,
                                     special == 77 ? 1 : 0});
      }
      run.check_values(actual, wanted);
    }
  });
}

TEST_CASE("cuda: barriers in memory") {
  run_case({"mbarrier.cu", 80}, [](CudaRun& run) {
    const std::size_t n = 96, rounds = 6;
    auto now = run.dice.integers<std::uint32_t>(n, 0, 1000);
    const auto data = run.input(now);
    run.launch("split_barrier", {1}, {n}, data, as_int(rounds));
    for (std::size_t r = 0; r < rounds; ++r) {
      std::vector<std::uint32_t> next(n);
      for (std::size_t i = 0; i < n; ++i) next[i] = now[i] * 3 + now[(i + 1) % n];
      now = next;
    }
    run.check_equal(data, now);

    const std::size_t batches = 9, consumers = 64;
    const auto in = run.dice.integers<std::int32_t>(batches * 32, -100, 100);
    const auto sums = run.input(std::vector<std::int32_t>(consumers));
    run.launch("ring", {1}, {32 + consumers}, run.input(in), sums, as_int(batches));
    std::vector<std::int32_t> expected(consumers);
    for (std::size_t i = 0; i < batches * 32; ++i)
      expected[i % 32] += in[i] * static_cast<std::int32_t>(i / 32 + 1);
    run.check_equal(sums, expected);
  });
}

TEST_CASE("cuda: asynchronous copies of groups and pipelines") {
  run_case({"copy_pipeline.cu", 80}, [](CudaRun& run) {
    const std::size_t n = 700;
    const auto in = run.dice.integers<std::int32_t>(n, -1000, 1000);
    const auto out = run.output<std::int32_t>(n);
    run.launch_shared("group_copy", {3}, {64}, 256 * 4, run.input(in), out, as_int(n));
    std::vector<std::int32_t> expected(n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t start = i / 256 * 256, count = std::min<std::size_t>(256, n - start);
      expected[i] = in[start + count - 1 - (i - start)];
    }
    run.check_equal(out, expected);

    const std::size_t steps = 7;
    const auto quads = run.dice.integers<std::int32_t>(steps * 64 * 4, -1000, 1000);
    const auto sums = run.output<std::int32_t>(64 * 4);
    run.launch("staged_sum", {1}, {64}, run.input(quads), sums, as_int(steps));
    std::vector<std::int32_t> wanted(64 * 4);
    for (std::size_t i = 0; i < quads.size(); i += 4) {
      std::int32_t* sum = &wanted[i % 256];
      sum[0] += quads[i];
      sum[1] ^= quads[i + 1];
      sum[2] = std::max(sum[2], quads[i + 2]);
      sum[3] = sum[3] * 3 + quads[i + 3];
    }
    run.check_equal(sums, wanted);
  });
}

TEST_CASE("cuda: tiles and other groups of a block") {
  run_case({"group_tiles.cu"}, [](CudaRun& run) {
    const std::size_t n = 128;
    const auto in = run.dice.integers<std::int32_t>(n, 0, 100);
    const auto out = run.output<std::int32_t>(n * 6);
    run.launch("group_tiles", {1}, {n}, run.input(in), out);
    std::vector<std::int32_t> expected;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t tile = i / 4 * 4, warp = i / 32 * 32;
      const auto reversed = [&](std::size_t k) { return in[tile + 3 - k % 4]; };
      int any = 0, all = 1, votes = 0;
      for (std::size_t k = 0; k < 4; ++k) {
        any |= reversed(k) > 50 ? 1 : 0;
        all &= reversed(k) > 50 ? 1 : 0;
        votes |= reversed(k) % 2 << k;
      }
      int threes = 0, threes_before = 0, same = 0, same_before = 0;
      for (std::size_t k = warp; k < warp + 32; ++k) {
        threes += in[k] % 3 == 0 ? 1 : 0;
        threes_before += in[k] % 3 == 0 && k < i ? 1 : 0;
        same += (in[k] & 3) == (in[i] & 3) ? 1 : 0;
        same_before += (in[k] & 3) == (in[i] & 3) && k < i ? 1 : 0;
      }
      expected.insert(expected.end(), {reversed(i % 4), reversed(i % 4 + 1), any * 2 + all, votes,
                                       in[i] % 3 == 0 ? threes * 100 + threes_before : 0,
                                       same * 100 + same_before});
    }
    run.check_equal(out, expected);

    const auto tokens = run.output<std::int32_t>(4);
    run.launch("group_relay", {1}, {64}, tokens);
    std::vector<std::uint32_t> relayed{1, 2, 3, 4};
    for (std::uint32_t& token : relayed) {
      for (std::uint32_t iteration = 0; iteration < 16; ++iteration) token = token * 3 + iteration;
    }
    run.check_equal(tokens, std::vector<std::int32_t>(relayed.begin(), relayed.end()));
  });
}

TEST_CASE("cuda: votes, matches and partial shuffles") {
  run_case({"vote_match.cu"}, [](CudaRun& run) {
    for (const bool equal : {false, true}) {
      const auto in =
          equal ? std::vector<std::int32_t>(32, 7) : run.dice.integers<std::int32_t>(32, 0, 6);
      const auto out = run.output<std::uint32_t>(320);
      run.launch("vote_match", {1}, {32}, run.input(in), out);
      const auto lanes_where = [&](auto holds) {
        std::uint32_t mask = 0;
        for (std::size_t k = 0; k < 32; ++k) mask |= holds(in[k]) ? 1u << k : 0;
        return mask;
      };
      const std::uint32_t above = lanes_where([](int v) { return v > 3; });
      const std::uint32_t odd = lanes_where([](int v) { return v % 2 != 0; });
      std::vector<std::uint32_t> expected;
      for (std::size_t i = 0; i < 32; ++i) {
        const std::size_t source = i % 2 != 0 ? ((i * 3) | 1) % 32 : i ^ 6;
        std::uint32_t odd_of_even = 0;
        for (std::size_t k = 0; k < 32; k += 2) odd_of_even += odd >> k & 1;
        const std::uint32_t pair = (in[i] & 1) != 0 ? odd : ~odd;
        expected.insert(expected.end(),
                        {above, equal ? 3u : 2u, lanes_where([&](int v) { return v == in[i]; }),
                         equal ? ~0u : 0u, equal ? 1u : 0u, pair,
                         static_cast<std::uint32_t>(in[i / 8 * 8 + (i + 3) % 8]),
                         static_cast<std::uint32_t>(in[i % 16 >= 2 ? i - 2 : i]),
                         i % 2 != 0 ? above & 0xaaaaaaaau : odd_of_even,
                         static_cast<std::uint32_t>(in[source])});
      }
      run.check_equal(out, expected);
    }
  });
}

TEST_CASE("cuda: clocks and sleeping") {
  run_case({"clocks.cu"}, [](CudaRun& run) {
    const auto flag = run.input(std::vector<std::int32_t>{0});
    const auto ordered = run.output<std::int32_t>(64);
    const auto spans = run.output<std::int64_t>(64);
    run.launch("clocks", {1}, {64}, flag, ordered, spans);
    run.check_equal(flag, {1});
    run.check_equal(ordered, std::vector<std::int32_t>(64, 3));
    const auto lengths = run.read(spans);
    run.check_true(*std::max_element(lengths.begin(), lengths.end()) > 0, "the clock moves");
  });
}

TEST_CASE("cuda: random points in a square") {
  run_case({"monte_carlo.cu"}, [](CudaRun& run) {
    const std::uint64_t seed = 12345;
    const std::size_t threads = 256, draws = 40;
    const auto inside = run.input(std::vector<std::uint32_t>{0});
    run.launch("monte_carlo", {4}, {64}, seed, as_int(draws), inside);
    std::uint32_t hits = 0;
    for (std::size_t t = 0; t < threads; ++t) {
      std::uint64_t state = seed + 0x9e3779b97f4a7c15u * (t + 1);
      for (std::size_t i = 0; i < draws; ++i) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        const std::uint64_t x = state & 0xffff, y = state >> 16 & 0xffff;
        if (x * x + y * y < 0x100000000u) ++hits;
      }
    }
    run.check_equal(inside, {hits});
  });
}
