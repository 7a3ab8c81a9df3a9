// tests/emulator/warpgroup_kernels.cpp - kernels of one wgmma on matrices of small integers
#include "warpgroup_kernels.hpp"

#include <catch2/catch.hpp>
#include <cstring>

namespace ptxgen::test {

namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kRows = 64;

std::string braces_of(const std::string& prefix, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i) {
    text += (i == 0 ? "" : ", ") + prefix + std::to_string(i);
  }
  return text + "}";
}

void put(std::vector<std::uint8_t>& bytes, std::size_t at, std::uint64_t bits, unsigned count) {
  if (bytes.size() < at + count) bytes.resize(at + count);
  std::memcpy(bytes.data() + at, &bits, count);
}

std::uint64_t element(const std::string& type, std::int64_t value, bool bits) {
  return bits ? static_cast<std::uint64_t>(value) : encoded(type, value);
}

/// Row and column of register word `word`, element `e`, of d, as the PTX ISA's figure says.
struct Place {
  unsigned row, column;
};
Place place_of_d(unsigned thread, unsigned index) {
  const unsigned warp = thread / 32, lane = thread % 32;
  return {16 * warp + lane / 4 + (index % 4 >= 2 ? 8 : 0),
          index / 4 * 8 + lane % 4 * 2 + index % 2};
}

/// The kernel's text. The block copies `image` bytes of `in` to shared memory, then loads c and the
/// fragments of a.
std::string kernel_text(const WarpgroupCase& c, std::size_t image, std::uint64_t of_a,
                        std::uint64_t of_b) {
  const std::string reg = c.d == "f32" ? "%f" : "%r";
  const std::string bytes = std::to_string(image);
  const std::string words = std::to_string(c.registers());
  std::string text =
      ".version 8.4\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
      ".shared .align 1024 .b8 tile[49152];\n"
      ".reg .pred %p<4>;\n.reg .b32 %r<132>;\n.reg .f32 %f<130>;\n.reg .b32 %a<4>;\n"
      ".reg .b32 %t, %i, %s, %v<4>;\n.reg .b64 %rd<8>, %out, %in;\n"
      "ld.param.u64 %out, [out];\nld.param.u64 %in, [in];\nmov.u32 %t, %tid.x;\n"
      "shl.b32 %i, %t, 4;\nmov.u32 %s, tile;\n"
      "copy:\nsetp.ge.u32 %p1, %i, " +
      bytes +
      ";\n@%p1 bra copied;\n"
      "cvt.u64.u32 %rd1, %i;\nadd.u64 %rd1, %in, %rd1;\n"
      "ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%rd1];\nadd.u32 %r130, %s, %i;\n"
      "st.shared.v4.u32 [%r130], {%v0, %v1, %v2, %v3};\nadd.u32 %i, %i, 2048;\nbra copy;\n"
      "copied:\nfence.proxy.async;\nbar.sync 0;\n"
      "mul.wide.u32 %rd1, %t, " +
      words +
      " * 4;\nadd.u64 %out, %out, %rd1;\n"
      "add.u64 %rd2, %in, %rd1;\n";
  for (unsigned i = 0; i < c.registers(); ++i) {
    text += "ld.global." + std::string(c.d == "f32" ? "f32 " : "u32 ") + reg + std::to_string(i) +
            ", [%rd2+" + std::to_string(image + i * 4) + "];\n";
  }
  if (c.a_in_registers) {
    const std::size_t fragments = image + std::size_t{kThreads} * c.registers() * 4;
    text +=
        "mul.wide.u32 %rd3, %t, 16;\nadd.u64 %rd3, %in, %rd3;\n"
        "ld.global.v4.u32 {%a0, %a1, %a2, %a3}, [%rd3+" +
        std::to_string(fragments) + "];\n";
  }
  text +=
      "cvt.u64.u32 %rd4, %s;\nshr.u64 %rd4, %rd4, 4;\n"
      "add.u64 %rd5, %rd4, " +
      std::to_string(of_a) +
      "U;\n"
      "add.u64 %rd6, %rd4, " +
      std::to_string(of_b) +
      "U;\n"
      "setp.eq.u32 %p0, 0, " +
      (c.accumulate ? "0" : "1") + ";\nwgmma.fence.sync.aligned;\n";
  text += c.opcode() + " " + braces_of(reg, c.registers()) + ", " +
          (c.a_in_registers ? braces_of("%a", 4) : "%rd5") + ", %rd6, %p0";
  if (!c.integer()) {
    text += std::string(c.negate_a ? ", -1" : ", 1") + (c.negate_b ? ", -1" : ", 1");
    if (c.element_bytes() == 2) {
      if (!c.a_in_registers) text += c.transpose_a ? ", 1" : ", 0";
      text += c.transpose_b ? ", 1" : ", 0";
    }
  }
  text += ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  for (unsigned i = 0; i < c.registers(); ++i) {
    text += "st.global." + std::string(c.d == "f32" ? "f32" : "u32") + " [%out+" +
            std::to_string(i * 4) + "], " + reg + std::to_string(i) + ";\n";
  }
  return text + "ret;\n}\n";
}

/// c, thread by thread.
void put_accumulators(std::vector<std::uint8_t>& bytes, const WarpgroupCase& c,
                      const Matrix& matrix) {
  const unsigned width = c.d == "f16" ? 2 : 4;
  const std::size_t base = bytes.size();
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    for (unsigned i = 0; i < c.n / 2; ++i) {
      const Place at = place_of_d(thread, i);
      put(bytes, base + std::size_t{thread} * c.registers() * 4 + i * width,
          element(c.d, matrix.at(at.row, at.column), c.bits), width);
    }
  }
}

/// The fragments of a: register r of 4 has elements of row group + 8 (r odd), the k of a quarter.
void put_fragments(std::vector<std::uint8_t>& bytes, const WarpgroupCase& c, const Matrix& matrix) {
  const unsigned size = c.element_bytes();
  const unsigned per = 4 / size;
  const std::size_t base = bytes.size();
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    const unsigned lane = thread % 32;
    for (unsigned r = 0; r < 4; ++r) {
      for (unsigned e = 0; e < per; ++e) {
        const unsigned row = thread / 32 * 16 + lane / 4 + (r % 2 == 1 ? 8 : 0);
        const unsigned k = lane % 4 * per + (r >= 2 ? 4 * per : 0) + e;
        put(bytes, base + std::size_t{thread} * 16 + r * 4 + e * size,
            element(c.a, matrix.at(row, k), c.bits), size);
      }
    }
  }
}

}  // namespace

std::string WarpgroupCase::opcode() const {
  return "wgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k" + std::to_string(k()) +
         (saturate ? ".satfinite" : "") + "." + d + "." + a + "." + b;
}

std::string WarpgroupCase::text() const {
  return opcode() + " swizzle " + std::to_string(swizzle) + (a_in_registers ? " registers" : "") +
         (transpose_a ? " ta" : "") + (transpose_b ? " tb" : "") + (negate_a ? " -a" : "") +
         (negate_b ? " -b" : "") + (accumulate ? "" : " =");
}

std::uint64_t descriptor(std::uint64_t start, std::uint64_t leading, std::uint64_t stride,
                         unsigned swizzle, unsigned base_offset) {
  const std::uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  const auto field = [](std::uint64_t bytes) { return bytes % (1 << 18) / 16; };
  return field(start) | field(leading) << 16 | field(stride) << 32 |
         std::uint64_t{base_offset} << 49 | mode << 62;
}

SharedMatrix lay_out(const Matrix& matrix, const std::string& type, unsigned swizzle,
                     bool transposed, bool bits) {
  const unsigned size = bits_of(type) / 8;
  const unsigned per = 16 / size;  // elements of a piece
  SharedMatrix result;
  // Groups of 8 lines: of m or n with pieces along k, or transposed the other way round.
  const unsigned lines = transposed ? matrix.columns : matrix.rows;
  const unsigned across = transposed ? matrix.rows : matrix.columns;
  const unsigned pieces = across / per;
  const unsigned wide = swizzle == 0 ? 1 : swizzle / 16;  // pieces of a line together
  const unsigned blocks = (pieces + wide - 1) / wide;
  // Without swizzle, core matrices of 128 bytes: those of one group of lines side by side. With it,
  // a block of 8 lines has 8 * swizzle bytes; all groups of lines of one block follow each other.
  const unsigned block_bytes = 8 * (swizzle == 0 ? 16 : swizzle);
  const unsigned groups = lines / 8;
  for (unsigned line = 0; line < lines; ++line) {
    for (unsigned x = 0; x < across; ++x) {
      const unsigned piece = x / per;
      const unsigned block = piece / wide;
      const unsigned base = swizzle == 0 ? (line / 8 * blocks + block) * block_bytes
                                         : (block * groups + line / 8) * block_bytes;
      const unsigned row = line % 8;
      unsigned within = piece % wide;
      // The piece is moved by the number of the 128 bytes that the line is in.
      if (swizzle != 0) within ^= row * swizzle / 128;
      const std::size_t at =
          base + row * (swizzle == 0 ? 16 : swizzle) + within * 16 + x % per * size;
      const std::int64_t value = transposed ? matrix.at(x, line) : matrix.at(line, x);
      put(result.bytes, at, element(type, value, bits), size);
    }
  }
  result.bytes.resize(std::size_t{blocks} * groups * block_bytes);
  if (swizzle == 0) {
    // Across and along the groups of lines; which of the two is `leading` depends on the order.
    const unsigned next_piece = block_bytes, next_group = blocks * block_bytes;
    result.leading = transposed ? next_group : next_piece;
    result.stride = transposed ? next_piece : next_group;
  } else {
    result.leading = std::uint64_t{groups} * block_bytes;
    result.stride = block_bytes;
  }
  return result;
}

Matrix run_warpgroup(const WarpgroupCase& c, const Matrix& a, const Matrix& b, const Matrix& c_in,
                     std::uint64_t seed) {
  INFO(c.text());
  SharedMatrix left;
  if (!c.a_in_registers) left = lay_out(a, c.a, c.swizzle, c.transpose_a, c.bits);
  const SharedMatrix right = lay_out(b, c.b, c.swizzle, c.transpose_b, c.bits);
  std::vector<std::uint8_t> in = left.bytes;
  in.resize((in.size() + 1023) / 1024 * 1024);
  const std::size_t start_b = in.size();
  in.insert(in.end(), right.bytes.begin(), right.bytes.end());
  in.resize((in.size() + 15) / 16 * 16);
  const std::size_t image = in.size();
  REQUIRE(image <= 49152);
  put_accumulators(in, c, c_in);
  if (c.a_in_registers) put_fragments(in, c, a);

  const std::string text =
      kernel_text(c, image, descriptor(0, left.leading, left.stride, c.swizzle),
                  descriptor(start_b, right.leading, right.stride, c.swizzle));
  emulator::Device device(emulator::default_gpu("sm_90a"));
  emulator::Program program = emulator::Program::load(device, text);
  const std::size_t out_bytes = std::size_t{kThreads} * c.registers() * 4;
  const std::uint64_t addresses[2] = {device.allocate(out_bytes, "out"),
                                      device.allocate(in.size(), "in")};
  device.write(addresses[1], std::as_bytes(std::span(in)));
  emulator::Launch launch;
  launch.kernel = "k";
  launch.grid = {1, 1, 1};
  launch.block = {kThreads, 1, 1};
  launch.parameters = std::as_bytes(std::span(addresses));
  emulator::Options options;
  options.seed = seed;
  const emulator::Result result = emulator::run(program, launch, options);
  std::string findings;
  for (const auto& finding : result.findings) findings += emulator::to_text(finding) + "\n";
  REQUIRE(findings == "");

  std::vector<std::uint8_t> out(out_bytes);
  device.read(addresses[0], std::as_writable_bytes(std::span(out)));
  Matrix d(kRows, c.n);
  const unsigned width = c.d == "f16" ? 2 : 4;
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    for (unsigned i = 0; i < c.n / 2; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, out.data() + std::size_t{thread} * c.registers() * 4 + i * width, width);
      const Place at = place_of_d(thread, i);
      d.at(at.row, at.column) = c.bits ? static_cast<std::int64_t>(bits) : decoded(c.d, bits);
    }
  }
  return d;
}

}  // namespace ptxgen::test
