// tests/emulator/cuda/language_test.cpp - calls, tables, structures, memory, printf of CUDA C++
#include <algorithm>
#include <numeric>

#include "cuda_case.hpp"
#include "numbers.hpp"

using namespace ptxgen::test;

TEST_CASE("cuda: device printf") {
  run_case({"printing.cu"}, [](CudaRun& run) {
    std::vector<float> values(32);
    std::iota(values.begin(), values.end(), 0.5f);
    run.launch("printing", {2}, {32}, run.input(values));
    std::string expected;
    for (const char* block : {"0", "1"}) {
      expected += "block " + std::string(block) + " of 2\n";
      expected +=
          "   42|42   |00042|+42\n"
          "ff FF 0xff 10 z %\n"
          "-1234567890123 18446744073709551615 123456789abcdef\n"
          "3.142    -2.50 1.234568e+04 0.0001\n"
          "[text] [   right] [left    ]\n"
          "-300 -7 1099511627776\n"
          "     7| 8|abc|-1.2346e-03\n"
          "no arguments\n"
          "lane 3 has 3.5\nlane 11 has 11.5\nlane 19 has 19.5\nlane 27 has 27.5\n";
    }
    run.check_true(run.printed() == expected, "printed:\n" + run.printed());
  });
}

TEST_CASE("cuda: assertions that hold") {
  run_case({"assertions.cu"}, [](CudaRun& run) {
    const std::size_t n = 100;
    const auto in = run.dice.integers<std::int32_t>(n, 0, 1000);
    const auto out = run.output<std::int32_t>(n);
    run.launch("assertions", {2}, {64}, run.input(in), out, as_int(n));
    std::vector<std::int32_t> expected;
    for (const std::int32_t value : in) expected.push_back(value % 2 == 0 ? value / 2 : -1);
    run.check_equal(out, expected);
  });
}

TEST_CASE("cuda: recursion") {
  run_case({"recursion.cu"}, [](CudaRun& run) {
    const auto out = run.output<std::int32_t>(96);
    run.launch("recursion", {1}, {32}, out);
    std::vector<std::int32_t> expected;
    const std::int32_t fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144};
    for (int t = 0; t < 32; ++t) expected.push_back(fibonacci[t % 13]);
    for (int t = 0; t < 32; ++t) expected.push_back(2 * (t % 5) + 3);  // Ackermann's A(2, n)
    for (int t = 0; t < 32; ++t) expected.push_back(t % 2 == 0 ? 1 : 2);
    run.check_equal(out, expected);

    const std::size_t rows = 64, n = 20;
    auto data = run.dice.integers<std::int32_t>(rows * n, -30, 30);
    const auto device_data = run.input(data);
    run.launch("quicksorts", {2}, {32}, device_data, as_int(n));
    for (std::size_t r = 0; r < rows; ++r) {
      const auto first = data.begin() + static_cast<std::ptrdiff_t>(r * n);
      std::sort(first, first + static_cast<std::ptrdiff_t>(n));
    }
    run.check_equal(device_data, data);
  });
}

TEST_CASE("cuda: function pointers and virtual functions") {
  run_case({"function_pointers.cu"}, [](CudaRun& run) {
    const std::size_t n = 128;
    const auto codes = run.dice.integers<std::int32_t>(n, 0, 3);
    const auto a = run.dice.integers<float>(n, -20, 20), b = run.dice.integers<float>(n, -20, 20);
    const auto out = run.output<float>(n);
    run.launch("function_pointers", {2}, {64}, run.input(codes), run.input(a), run.input(b), out);
    std::vector<float> expected;
    for (std::size_t i = 0; i < n; ++i) {
      float x = a[i];
      for (int twice = 0; twice < 2; ++twice) {
        x = codes[i] == 0   ? x + b[i]
            : codes[i] == 1 ? x - b[i]
            : codes[i] == 2 ? x * b[i]
                            : std::max(x, b[i]);
      }
      expected.push_back(x);
    }
    run.check_equal(out, expected);

    const auto shapes = run.output<std::int32_t>(96);
    run.launch("virtual_calls", {3}, {32}, shapes);
    std::vector<std::int32_t> areas;
    for (int i = 0; i < 96; ++i) {
      areas.push_back(i % 3 == 0   ? i * i * 10 + 4
                      : i % 3 == 1 ? i * (i + 2) / 2 * 10 + 3
                                   : 3 * i * i * 10);
    }
    run.check_equal(shapes, areas);
  });
}

TEST_CASE("cuda: a switch with many cases") {
  run_case({"switch_table.cu"}, [](CudaRun& run) {
    const std::size_t length = 60, n = 64;
    auto code = run.dice.integers<std::uint8_t>(length, 0, 13);
    code[10] = 200;
    const auto in = run.dice.integers<std::int32_t>(n, -100000, 100000);
    const auto out = run.output<std::int32_t>(n);
    run.launch("switch_table", {2}, {32}, run.input(code), as_int(length), run.input(in), out);
    std::vector<std::int32_t> expected;
    for (const std::int32_t start : in) {
      auto a = static_cast<std::uint32_t>(start);
      std::uint32_t b = 1;
      for (std::size_t pc = 0; pc < length;) {
        const std::uint8_t op = code[pc++];
        if (op == 0)
          a += b;
        else if (op == 1)
          a -= 3;
        else if (op == 2)
          a *= 5;
        else if (op == 3)
          b ^= a;
        else if (op == 4)
          a = a << 7 | a >> 25;
        else if (op == 5)
          std::swap(a, b);
        else if (op == 6)
          pc += a & 1;
        else if (op == 7)
          b += as_u32(pc);
        else if (op == 8)
          a = ~a;
        else if (op == 9 || op == 10) {
          if (op == 9) b >>= 1;
          a ^= 0x5bd1e995u;
        } else if (op == 11) {
          if ((a & 15) == 3) break;
        } else {
          a += op == 200 ? 200 : 17;
        }
      }
      expected.push_back(static_cast<std::int32_t>(a ^ b));
    }
    run.check_equal(out, expected);
  });
}

TEST_CASE("cuda: structures and templates as parameters") {
  struct Small {
    std::int8_t tag;
    std::int16_t step;
  };
  struct Config {
    Small small[3];
    double scale;
    float offset[5];
    std::uint64_t out;
    std::uint8_t last;
  };
  struct Polynomial {
    std::int32_t c[4];
  };
  struct Pair {
    std::int8_t x, y;
  };
  struct alignas(16) LongPair {
    std::int64_t x, y;
  };
  run_case({"templates.cu"}, [](CudaRun& run) {
    const std::size_t n = 96;
    const auto in = run.dice.integers<std::int32_t>(n, -1000, 1000);
    const auto out = run.output<std::int32_t>(n);
    Config config{};
    for (std::size_t i = 0; i < 3; ++i)
      config.small[i] = {static_cast<std::int8_t>(run.dice.between(0, 100)),
                         static_cast<std::int16_t>(run.dice.between(-300, 300))};
    config.scale = 1234.5;
    for (float& offset : config.offset) offset = run.dice.uniform(-50, 50);
    config.out = out.address;
    config.last = 250;
    const Polynomial p{{7, -3, 2, 5}};
    run.launch("templates", {3}, {32}, config, p, run.input(in), Pair{-7, 11});
    std::vector<std::int32_t> expected;
    for (std::size_t i = 0; i < n; ++i) {
      const Small& s = config.small[i % 3];
      const int k = static_cast<int>(config.offset[i % 5]) + s.step * s.tag;
      int x = in[i];
      for (int twice = 0; twice < 2; ++twice) {
        const int y = x % 8;
        x = ((p.c[3] * y + p.c[2]) * y + p.c[1]) * y + p.c[0] + k;
      }
      expected.push_back(x + 4938 + 250 - 77);
    }
    run.check_equal(out, expected);

    const auto quads = run.dice.integers<std::int16_t>(32 * 4, -9000, 9000);
    const auto rotated = run.output<std::int16_t>(32 * 4);
    run.launch("rotations", {1}, {32}, run.input(quads), rotated, LongPair{100, -200});
    std::vector<std::int16_t> wanted;
    for (std::size_t i = 0; i < quads.size(); i += 4) {
      wanted.push_back(static_cast<std::int16_t>(quads[i + 3] + 100));
      wanted.push_back(static_cast<std::int16_t>(quads[i] + 200));
      wanted.push_back(quads[i + 1]);
      wanted.push_back(static_cast<std::int16_t>(quads[i + 2] * 2));
    }
    run.check_equal(rotated, wanted);
  });
}

TEST_CASE("cuda: arrays of a thread's own") {
  run_case({"local_array.cu"}, [](CudaRun& run) {
    const std::size_t threads = 64, n = 50;
    const auto in = run.dice.integers<std::uint8_t>(threads * n, 0, 255);
    const auto out = run.output<std::int32_t>(threads);
    run.launch("local_array", {2}, {32}, run.input(in), as_int(n), out);
    std::vector<std::int32_t> expected;
    for (std::size_t t = 0; t < threads; ++t) {
      std::vector<std::int32_t> counts(16);
      for (std::size_t i = 0; i < n; ++i) ++counts[in[t * n + i] & 15];
      const auto max = std::max_element(counts.begin(), counts.end());
      expected.push_back(static_cast<std::int32_t>(max - counts.begin()) * 1000 + *max);
    }
    run.check_equal(out, expected);

    const std::size_t items = 20;
    const auto weights = [&] {
      std::vector<double> values;
      for (std::size_t i = 0; i < 32 * items; ++i) values.push_back(run.dice.uniform(-1, 1));
      return values;
    }();
    const auto order = run.output<std::int16_t>(32 * items);
    run.launch("local_heap", {1}, {32}, run.input(weights), as_int(items), order);
    std::vector<std::int16_t> wanted(32 * items);
    for (std::size_t t = 0; t < 32; ++t) {
      const auto first = wanted.begin() + static_cast<std::ptrdiff_t>(t * items);
      const auto last = first + static_cast<std::ptrdiff_t>(items);
      std::iota(first, last, std::int16_t{0});
      std::sort(first, last, [&](std::int16_t a, std::int16_t b) {
        return weights[t * items + at(a)] < weights[t * items + at(b)];
      });
    }
    run.check_equal(order, wanted);
  });
}

TEST_CASE("cuda: constant memory and module variables") {
  run_case({"constant_memory.cu"}, [](CudaRun& run) {
    const std::size_t width = 40, height = 20;
    const auto filter = run.dice.integers<float>(25, -9, 9);
    const auto in = run.dice.integers<float>(width * height, -9, 9);
    run.write(run.variable<float>("filter"), filter);
    const auto out = run.output<float>(width * height);
    run.launch("convolve", {3, 5}, {16, 4}, run.input(in), out, as_int(width), as_int(height));
    std::vector<float> expected(width * height);
    for (std::size_t p = 0; p < expected.size(); ++p) {
      for (int j = 0; j < 5; ++j) {
        for (int i = 0; i < 5; ++i) {
          const int x = std::clamp(as_int(p % width) + i - 2, 0, as_int(width) - 1);
          const int y = std::clamp(as_int(p / width) + j - 2, 0, as_int(height) - 1);
          expected[p] += in[at(y) * width + at(x)] * filter[at(j * 5 + i)];
        }
      }
    }
    run.check_equal(out, expected);

    const std::vector<std::int32_t> offsets{5, -6, 7, -8, 9, -10, 11, -12};
    run.write(run.variable<std::int32_t>("offsets"), offsets);
    const auto keys = run.dice.integers<std::int32_t>(64, 0, 1000);
    const auto found = run.output<std::int32_t>(64);
    const auto rooted = run.output<double>(64);
    run.launch("tables", {1}, {64}, run.input(keys), found, rooted);
    const int steps[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
    const double roots[] = {0.0, 1.0, 1.4142135623730951, 1.7320508075688772};
    std::vector<std::int32_t> wanted;
    std::vector<double> wanted_roots;
    for (const std::int32_t key : keys) {
      wanted.push_back(offsets[at(key & 7)] + steps[key & 15] * 100);
      wanted_roots.push_back(roots[key & 3]);
    }
    run.check_equal(found, wanted);
    run.check_equal(rooted, wanted_roots);
    run.check_equal(run.variable<std::uint32_t>("calls"), {69u});
  });
}

TEST_CASE("cuda: three dimensions and partial warps") {
  run_case({"blocks_3d.cu"}, [](CudaRun& run) {
    const std::uint32_t bx = 5, by = 3, bz = 4, gx = 2, gy = 3, gz = 2, size = bx * by * bz;
    const auto out = run.output<std::uint32_t>(gx * gy * gz * size * 5);
    run.launch("blocks_3d", {gx, gy, gz}, {bx, by, bz}, out);
    std::vector<std::uint32_t> expected;
    for (std::uint32_t b = 0; b < gx * gy * gz; ++b) {
      for (std::uint32_t t = 0; t < size; ++t) {
        const std::uint32_t lane = t % 32, lanes = std::min(32u, size - t / 32 * 32);
        expected.insert(expected.end(), {t % bx | t / bx % by << 8 | t / bx / by << 16,
                                         b % gx | b / gx % gy << 8 | b / gx / gy << 16, lane,
                                         (1u << lane) - 1, lanes == 32 ? ~0u : (1u << lanes) - 1});
      }
    }
    run.check_equal(out, expected);

    for (const std::uint32_t rows : {1u, 9u, 13u}) {
      const auto in = run.dice.integers<std::int32_t>(rows * 7, -1000, 1000);
      const auto sum = run.output<std::int32_t>(1);
      run.launch("partial_warps", {1}, {7, rows}, run.input(in), sum);
      run.check_equal(sum, {std::accumulate(in.begin(), in.end(), 0)});
    }
  });
}

TEST_CASE("cuda: memory allocated by kernels") {
  run_case({"device_heap.cu"}, [](CudaRun& run) {
    const std::size_t threads = 64, n = 6;
    const auto in = run.dice.integers<std::int32_t>(threads * n, -100, 100);
    const auto out = run.output<std::int32_t>(threads);
    run.launch("linked_lists", {2}, {32}, run.input(in), as_int(n), out);
    std::vector<std::int32_t> expected(threads);
    for (std::size_t i = 0; i < in.size(); ++i)
      expected[i / n] += as_int(n - i % n) * in[i];  // the list runs backwards
    run.check_equal(out, expected);

    const auto line = run.dice.integers<std::int32_t>(2 * 40, -100, 100);
    const auto rotated = run.output<std::int32_t>(line.size());
    run.launch("block_scratch", {2}, {40}, run.input(line), rotated);
    std::vector<std::int32_t> wanted(line.size());
    for (std::size_t i = 0; i < line.size(); ++i)
      wanted[i] = 0x11111111 + line[i / 40 * 40 + 39 - i % 40];
    run.check_equal(rotated, wanted);
  });
}

TEST_CASE("cuda: copies of every width and generic pointers") {
  struct Packed {
    std::uint8_t bytes[13];
  };
  struct alignas(16) Wide {
    double x;
    std::int32_t y[3];
    std::int8_t z;
    std::int8_t padding[11];
  };
  run_case({"memory_copies.cu"}, [](CudaRun& run) {
    const std::size_t n = 40;
    std::vector<Packed> packed(n);
    std::vector<Wide> wide(n);
    for (std::size_t i = 0; i < n; ++i) {
      for (auto& byte : packed[i].bytes) byte = static_cast<std::uint8_t>(run.dice.bits());
      wide[i] = {run.dice.uniform(-9, 9), {1, 2, 3}, static_cast<std::int8_t>(i), {}};
    }
    const auto out = run.output<Packed>(n);
    const auto to = run.output<Wide>(n);
    run.launch("structures", {1}, {n}, run.input(packed), out, run.input(wide), to);
    std::vector<std::uint8_t> actual, expected;
    std::vector<double> actual_wide, expected_wide;
    const auto got = run.read(out);
    const auto got_wide = run.read(to);
    for (std::size_t i = 0; i < n; ++i) {
      packed[i].bytes[i % 13] ^= 0x55;
      expected.insert(expected.end(), packed[i].bytes, packed[i].bytes + 13);
      actual.insert(actual.end(), got[i].bytes, got[i].bytes + 13);
      wide[i].y[i % 3] += as_int(i);
      wide[i].x *= 2;
      const auto listed = [](const Wide& w) {
        return std::vector<double>{w.x, double(w.y[0]), double(w.y[1]), double(w.y[2]),
                                   double(w.z)};
      };
      for (const double value : listed(wide[i])) expected_wide.push_back(value);
      for (const double value : listed(got_wide[i])) actual_wide.push_back(value);
    }
    run.check_values(actual, expected);
    run.check_values(actual_wide, expected_wide);

    const std::size_t bytes = 208;
    const auto in = run.dice.integers<std::uint8_t>(bytes, 0, 255);
    const auto copies = run.output<std::uint8_t>(5 * bytes);
    run.launch("widths", {1}, {32}, run.input(in), copies, as_int(bytes));
    std::vector<std::uint8_t> five;
    for (int i = 0; i < 5; ++i) five.insert(five.end(), in.begin(), in.end());
    run.check_equal(copies, five);

    const auto words = run.dice.integers<std::int32_t>(64, -10, 10);
    const auto sums = run.output<std::int32_t>(64);
    run.launch("generic_pointers", {1}, {64}, run.input(words), sums);
    std::vector<std::int32_t> wanted;
    for (std::size_t t = 0; t < 64; ++t) {
      std::uint32_t sum = 0;
      for (std::size_t i = 0; i < 8; ++i)
        sum = sum * 31 +
              static_cast<std::uint32_t>(t % 3 == 2 ? words[(t * 5 + i) % 64] : words[7 * i]);
      wanted.push_back(static_cast<std::int32_t>(sum + (t % 3 == 0 ? 3 : t % 3 == 1 ? 2 : 5)));
    }
    run.check_equal(sums, wanted);
  });
}
