// tests/emulator/cuda/grids_test.cpp - stencils, graphs, alignment, particles, sparse matrices
#include <algorithm>
#include <deque>

#include "cuda_case.hpp"
#include "numbers.hpp"

using namespace ptxgen::test;

TEST_CASE("cuda: stencil on a line") {
  run_case({"stencil_1d.cu"}, [](CudaRun& run) {
    const std::size_t n = 1000;
    const auto in = run.dice.integers<std::int32_t>(n, -1000, 1000);
    const auto out = run.output<std::int32_t>(n);
    run.launch_shared("stencil_1d", {8}, {128}, (128 + 6) * 4, run.input(in), out, as_int(n));
    std::vector<std::int32_t> expected(n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t d = 0; d < 7; ++d) {
        if (i + d >= 3 && i + d - 3 < n) expected[i] += in[i + d - 3] * as_int(d + 1);
      }
    }
    run.check_equal(out, expected);
  });
}

TEST_CASE("cuda: heat on a plate") {
  run_case({"stencil_2d.cu"}, [](CudaRun& run) {
    const std::size_t width = 50, height = 35;
    // Multiples of 2^-6 and k = 1/4: a few steps are exact.
    auto now = run.dice.integers<float>(width * height, 0, 500);
    auto power = run.dice.integers<float>(width * height, 0, 64);
    for (float& value : power) value *= 0x1p-6f;
    const auto device_power = run.input(power);
    auto from = run.input(now), to = run.output<float>(now.size());
    for (int step = 0; step < 3; ++step) {
      run.launch("stencil_2d", {4, 3}, {16, 16}, from, device_power, to, as_int(width),
                 as_int(height), 0.25f);
      std::swap(from, to);
      std::vector<float> next(now.size());
      for (std::size_t p = 0; p < now.size(); ++p) {
        const std::size_t x = p % width, y = p / width;
        const float around = now[x > 0 ? p - 1 : p] + now[x + 1 < width ? p + 1 : p] +
                             now[y > 0 ? p - width : p] + now[y + 1 < height ? p + width : p];
        next[p] = now[p] + 0.25f * (around - 4 * now[p]) + power[p];
      }
      now = next;
    }
    run.check_equal(from, now);
  });
}

TEST_CASE("cuda: stencils in space") {
  run_case({"stencil_3d.cu"}, [](CudaRun& run) {
    const std::size_t nx = 20, ny = 14, nz = 8, plane = nx * ny;
    const auto in = run.dice.integers<double>(plane * nz, -100, 100);
    const auto out = run.input(in);
    run.launch("stencil_3d", {3, 3}, {8, 8}, run.input(in), out, as_int(nx), as_int(ny), as_int(nz),
               0.5, 0.125);
    std::vector<double> expected(in);
    for (std::size_t p = 0; p < in.size(); ++p) {
      const std::size_t x = p % nx, y = p / nx % ny, z = p / plane;
      if (x == 0 || y == 0 || z == 0 || x + 1 == nx || y + 1 == ny || z + 1 == nz) continue;
      expected[p] = 0.5 * in[p] + 0.125 * (in[p - 1] + in[p + 1] + in[p - nx] + in[p + nx] +
                                           in[p - plane] + in[p + plane]);
    }
    run.check_equal(out, expected);

    const std::size_t n = 10;
    const auto cells = run.dice.integers<std::int32_t>(n * n * n, -100, 100);
    const auto sums = run.output<std::int32_t>(cells.size());
    run.launch("stencil_box", {2, 3, 3}, {8, 4, 4}, run.input(cells), sums, as_int(n));
    std::vector<std::int32_t> wanted(cells.size());
    for (std::size_t p = 0; p < cells.size(); ++p) {
      for (std::size_t d = 0; d < 27; ++d) {
        const std::size_t x = (p % n + n + d % 3 - 1) % n, y = (p / n % n + n + d / 3 % 3 - 1) % n,
                          z = (p / n / n + n + d / 9 - 1) % n;
        wanted[p] += cells[(z * n + y) * n + x];
      }
    }
    run.check_equal(sums, wanted);
  });
}

TEST_CASE("cuda: gravity of all pairs") {
  run_case({"nbody.cu"}, [](CudaRun& run) {
    const std::size_t n = 150;
    const auto bodies = run.dice.floats(4 * n, 0.1f, 10);
    const auto speeds = run.dice.floats(4 * n, -1, 1);
    const auto velocities = run.input(speeds);
    const auto moved = run.output<float>(4 * n);
    run.launch_shared("nbody", {3}, {64}, 64 * 16, run.input(bodies), velocities, moved, as_int(n),
                      0.01f, 0.5f);
    std::vector<double> expected, expected_speeds;
    for (std::size_t i = 0; i < n; ++i) {
      double pull[3] = {};
      for (std::size_t j = 0; j < n; ++j) {
        double d[3], square = 0.5;
        for (std::size_t c = 0; c < 3; ++c) {
          d[c] = double{bodies[4 * j + c]} - bodies[4 * i + c];
          square += d[c] * d[c];
        }
        for (std::size_t c = 0; c < 3; ++c)
          pull[c] += d[c] * bodies[4 * j + 3] / (square * std::sqrt(square));
      }
      for (std::size_t c = 0; c < 3; ++c) {
        const double speed = speeds[4 * i + c] + pull[c] * 0.01;
        expected_speeds.push_back(speed);
        expected.push_back(bodies[4 * i + c] + speed * 0.01);
      }
      expected_speeds.push_back(speeds[4 * i + 3]);
      expected.push_back(bodies[4 * i + 3]);
    }
    run.check_close(velocities, expected_speeds, 2e-5, 1e-6);
    run.check_close(moved, expected, 2e-6, 1e-6);
  });
}

TEST_CASE("cuda: breadth-first search") {
  run_case({"bfs.cu"}, [](CudaRun& run) {
    const std::size_t nodes = 1200;
    std::vector<std::int32_t> starts{0}, edges;
    for (std::size_t i = 0; i < nodes; ++i) {
      // A binary tree, so that frontiers grow past a block's buffer, and a few edges anywhere.
      for (const std::size_t child : {2 * i + 1, 2 * i + 2}) {
        if (child < nodes - 50) edges.push_back(as_int(child));
      }
      if (i % 3 == 0) edges.push_back(as_int(run.dice.below(nodes - 50)));
      starts.push_back(as_int(edges.size()));
    }
    std::vector<std::int32_t> expected(nodes, -1);
    expected[0] = 0;
    std::deque<std::size_t> waiting{0};
    while (!waiting.empty()) {
      const std::size_t node = waiting.front();
      waiting.pop_front();
      for (auto e = at(starts[node]); e < at(starts[node + 1]); ++e) {
        if (expected[at(edges[e])] != -1) continue;
        expected[at(edges[e])] = expected[node] + 1;
        waiting.push_back(at(edges[e]));
      }
    }
    std::vector<std::int32_t> unknown(nodes, -1);
    unknown[0] = 0;
    const auto depth = run.input(unknown);
    const auto device_starts = run.input(starts), device_edges = run.input(edges);
    auto frontier = run.output<std::int32_t>(nodes), next = run.output<std::int32_t>(nodes);
    run.write({frontier.address, 1}, std::vector<std::int32_t>{0});
    const auto count = run.output<std::int32_t>(1);
    std::int32_t waiting_now = 1;
    for (std::int32_t level = 1; waiting_now > 0 && level < as_int(nodes); ++level) {
      run.write(count, {0});
      const auto blocks = static_cast<std::uint32_t>((waiting_now + 127) / 128);
      run.launch("bfs_level", {blocks}, {128}, device_starts, device_edges, depth, frontier,
                 waiting_now, next, count, level);
      waiting_now = run.read(count)[0];
      std::swap(frontier, next);
    }
    run.check_equal(depth, expected);
  });
}

TEST_CASE("cuda: a step of k-means") {
  run_case({"kmeans.cu"}, [](CudaRun& run) {
    const std::size_t n = 700, k = 5;
    const auto points = run.dice.integers<std::int32_t>(2 * n, 0, 1000);
    auto centres = run.dice.integers<std::int32_t>(2 * k, 0, 1000);
    const auto device_points = run.input(points), device_centres = run.input(centres);
    const auto labels = run.output<std::int32_t>(n);
    for (int step = 0; step < 2; ++step) {
      const auto sums = run.input(std::vector<std::int32_t>(3 * k));
      run.launch_shared("kmeans_assign", {6}, {128}, 3 * k * 4, device_points, as_int(n),
                        device_centres, as_int(k), labels, sums);
      run.launch("kmeans_move", {1}, {k}, sums, device_centres);
      std::vector<std::int32_t> expected, total(3 * k);
      for (std::size_t i = 0; i < n; ++i) {
        std::size_t best = 0;
        std::int32_t min = INT32_MAX;
        for (std::size_t c = 0; c < k; ++c) {
          const std::int32_t dx = points[2 * i] - centres[2 * c];
          const std::int32_t dy = points[2 * i + 1] - centres[2 * c + 1];
          if (dx * dx + dy * dy >= min) continue;
          min = dx * dx + dy * dy;
          best = c;
        }
        expected.push_back(as_int(best));
        total[3 * best] += points[2 * i];
        total[3 * best + 1] += points[2 * i + 1];
        ++total[3 * best + 2];
      }
      for (std::size_t c = 0; c < k; ++c) {
        if (total[3 * c + 2] == 0) continue;
        centres[2 * c] = total[3 * c] / total[3 * c + 2];
        centres[2 * c + 1] = total[3 * c + 1] / total[3 * c + 2];
      }
      run.check_equal(labels, expected);
      run.check_equal(sums, total);
      run.check_equal(device_centres, centres);
    }
  });
}

TEST_CASE("cuda: alignment of sequences") {
  run_case({"needleman.cu"}, [](CudaRun& run) {
    const std::size_t length = 96, tiles = length / 32, stride = length + 1;
    const std::int32_t gap = 2;
    const auto a = run.dice.integers<std::int8_t>(length, 'a', 'd');
    const auto b = run.dice.integers<std::int8_t>(length, 'a', 'd');
    std::vector<std::int32_t> score(stride * stride);
    for (std::size_t i = 1; i <= length; ++i)
      score[i] = score[i * stride] = -gap * static_cast<std::int32_t>(i);
    const auto out = run.input(score);
    const auto device_a = run.input(a), device_b = run.input(b);
    for (std::size_t d = 0; d < 2 * tiles - 1; ++d) {
      const std::size_t blocks = std::min(d, 2 * tiles - 2 - d) + 1;
      run.launch("needleman", {as_u32(blocks)}, {32}, device_a, device_b, out, as_int(length),
                 as_int(d), gap);
    }
    for (std::size_t i = 1; i <= length; ++i) {
      for (std::size_t j = 1; j <= length; ++j) {
        const std::int32_t match =
            score[(i - 1) * stride + j - 1] + (a[i - 1] == b[j - 1] ? 3 : -2);
        score[i * stride + j] =
            std::max(match, std::max(score[(i - 1) * stride + j], score[i * stride + j - 1]) - gap);
      }
    }
    run.check_equal(out, score);
  });
}

TEST_CASE("cuda: cheapest path down a grid") {
  run_case({"path_finder.cu"}, [](CudaRun& run) {
    const std::size_t columns = 300, rows = 9, depth = 4, useful = 128 - 2 * depth;
    const auto wall = run.dice.integers<std::int32_t>((rows - 1) * columns, 0, 9);
    auto best = run.dice.integers<std::int32_t>(columns, 0, 9);
    const auto device_wall = run.input(wall);
    auto from = run.input(best), to = run.output<std::int32_t>(columns);
    for (std::size_t row = 0; row + 1 < rows; row += depth) {
      run.launch("path_finder", {(columns + useful - 1) / useful}, {128}, device_wall, from, to,
                 as_int(columns), as_int(row), as_int(depth));
      std::swap(from, to);
    }
    for (std::size_t row = 0; row + 1 < rows; ++row) {
      std::vector<std::int32_t> next(columns);
      for (std::size_t x = 0; x < columns; ++x) {
        std::int32_t smallest = best[x];
        if (x > 0) smallest = std::min(smallest, best[x - 1]);
        if (x + 1 < columns) smallest = std::min(smallest, best[x + 1]);
        next[x] = smallest + wall[row * columns + x];
      }
      best = next;
    }
    run.check_equal(from, best);
  });
}

TEST_CASE("cuda: the Mandelbrot set in fixed point") {
  run_case({"mandelbrot.cu"}, [](CudaRun& run) {
    const int width = 75, height = 40, max = 60;
    const auto out = run.output<std::uint8_t>(at(width * height));
    run.launch("mandelbrot", {5, 10}, {16, 4}, out, width, height, max);
    std::vector<std::uint8_t> expected;
    for (std::int64_t p = 0; p < width * height; ++p) {
      const std::int64_t cx = (p % width * 3 << 24) / width - (2 << 24);
      const std::int64_t cy = (p / width * 2 << 24) / height - (1 << 24);
      std::int64_t x = 0, y = 0;
      int i = 0;
      for (; i < max; ++i) {
        const std::int64_t xx = x * x >> 24, yy = y * y >> 24;
        if (xx + yy > std::int64_t{4} << 24) break;
        y = (x * y >> 23) + cy;
        x = xx - yy + cx;
      }
      expected.push_back(static_cast<std::uint8_t>(i));
    }
    run.check_equal(out, expected);
  });
}

TEST_CASE("cuda: the game of life in bytes and in bits") {
  run_case({"life.cu"}, [](CudaRun& run) {
    const std::size_t width = 64, height = 30, words = width / 32;
    auto cells = run.dice.integers<std::uint8_t>(width * height, 0, 1);
    const auto packed = [&] {
      std::vector<std::uint32_t> bits(words * height);
      for (std::size_t p = 0; p < cells.size(); ++p)
        bits[p / 32] |= std::uint32_t{cells[p]} << (p % 32);
      return bits;
    };
    auto bytes = run.input(cells), next_bytes = run.output<std::uint8_t>(cells.size());
    auto bits = run.input(packed()), next_bits = run.output<std::uint32_t>(words * height);
    for (int step = 0; step < 3; ++step) {
      run.launch("life_bytes", {4, 8}, {16, 4}, bytes, next_bytes, as_int(width), as_int(height));
      run.launch("life_bits", {1, 4}, {2, 8}, bits, next_bits, as_int(words), as_int(height));
      std::swap(bytes, next_bytes);
      std::swap(bits, next_bits);
      std::vector<std::uint8_t> next(cells.size());
      for (std::size_t p = 0; p < cells.size(); ++p) {
        int around = 0;
        for (std::size_t d = 0; d < 9; ++d) {
          const std::size_t x = (p % width + width + d % 3 - 1) % width;
          const std::size_t y = (p / width + height + d / 3 - 1) % height;
          if (d != 4) around += cells[y * width + x];
        }
        next[p] = around == 3 || (around == 2 && cells[p] != 0) ? 1 : 0;
      }
      cells = next;
    }
    run.check_equal(bytes, cells);
    run.check_equal(bits, packed());
  });
}

TEST_CASE("cuda: sparse matrix times vector") {
  run_case({"spmv.cu"}, [](CudaRun& run) {
    const std::size_t rows = 130, columns = 90;
    std::vector<std::int32_t> starts{0}, row_of, column_of;
    std::vector<float> values;
    for (std::size_t r = 0; r < rows; ++r) {
      const std::uint32_t count = r % 17 == 5 ? 70 : run.dice.below(9);
      for (std::uint32_t i = 0; i < count; ++i) {
        row_of.push_back(as_int(r));
        column_of.push_back(as_int(run.dice.below(columns)));
        values.push_back(static_cast<float>(run.dice.between(-9, 9)));
      }
      starts.push_back(as_int(values.size()));
    }
    const auto x = run.dice.integers<float>(columns, -9, 9);
    std::vector<float> expected(rows);
    for (std::size_t i = 0; i < values.size(); ++i)
      expected[at(row_of[i])] += values[i] * x[at(column_of[i])];
    const auto device_starts = run.input(starts), device_columns = run.input(column_of);
    const auto device_values = run.input(values), device_x = run.input(x);
    for (const bool warps : {false, true}) {
      const auto y = run.output<float>(rows);
      run.launch(warps ? "spmv_warps" : "spmv_threads", {warps ? 33u : 2u}, {128}, device_starts,
                 device_columns, device_values, device_x, y, as_int(rows));
      run.check_equal(y, expected);
    }
    const auto sums = run.input(std::vector<float>(rows));
    run.launch("spmv_entries", {as_u32((values.size() + 127) / 128)}, {128}, run.input(row_of),
               device_columns, device_values, device_x, sums, as_int(values.size()));
    run.check_equal(sums, expected);
  });
}
