// tests/check/race_generator.cpp - random exchanges through shared memory
#include "race_generator.hpp"

#include <cstring>
#include <span>
#include <stdexcept>

#include "ptx/dice.hpp"

namespace ptxgen::test {
namespace {

class Generator {
 public:
  explicit Generator(std::uint64_t number) : dice_(number * 0x9e3779b97f4a7c15u + 5) {}

  Exchange run() {
    constexpr std::uint32_t kThreads[] = {32, 64, 96, 128, 64, 40};
    threads_ = dice_.pick(kThreads);
    Exchange result;
    result.block = {threads_, 1, 1};
    if (threads_ % 16 == 0 && dice_.chance(25)) result.block = {16, threads_ / 16, 1};
    if (threads_ % 32 == 0 && dice_.chance(15)) result.block = {8, 4, threads_ / 32};
    careful_ = dice_.chance(50);
    result.n = dice_.below(2) == 0 ? dice_.below(8) : threads_;
    head();
    const std::uint32_t parts = dice_.between(1, 4);
    for (std::uint32_t i = 0; i < parts; ++i) part(2);
    line("st.global.u32 [%slot], %sum;");
    line("ret;");
    text_ += "}\n";
    result.ptx = std::move(text_);
    return result;
  }

 private:
  void line(const std::string& text) { text_ += "  " + text + "\n"; }
  std::string word(std::uint32_t value) { return std::to_string(value); }

  void head() {
    text_ =
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)\n{\n"
        "  .shared .align 16 .b32 tile[1024];\n  .shared .align 16 .b32 other[1024];\n"
        "  .reg .pred %p<4>, %q<4>;\n  .reg .b32 %r<16>, %i<4>, %me, %n, %sum, %a, %base, %data;\n"
        "  .reg .b64 %in, %out, %slot, %rd<4>;\n";
    line("ld.param.u64 %in, [in];");
    line("ld.param.u64 %out, [out];");
    line("ld.param.u32 %n, [n];");
    line("mov.u32 %r0, %tid.x;");
    line("mov.u32 %r1, %tid.y;");
    line("mov.u32 %r2, %tid.z;");
    line("mov.u32 %r3, %ntid.x;");
    line("mov.u32 %r4, %ntid.y;");
    line("mad.lo.u32 %r2, %r2, %r4, %r1;");
    line("mad.lo.u32 %me, %r2, %r3, %r0;");
    line("mul.wide.u32 %rd0, %me, 4;");
    line("add.s64 %slot, %out, %rd0;");
    line("add.s64 %rd1, %in, %rd0;");
    line("ld.global.u32 %data, [%rd1];");
    line("mov.u32 %sum, 0;");
    for (const char* counter : {"%i0", "%i1", "%i2"})
      line("mov.u32 " + std::string(counter) + ", 0;");
    // All of it is written once, each word by one thread.
    line("mov.u32 %r5, %me;");
    text_ += "FILL:\n";
    line("shl.b32 %r6, %r5, 2;");
    line("mov.u32 %a, tile;");
    line("add.u32 %a, %a, %r6;");
    line("st.shared.u32 [%a], %r5;");
    line("st.shared.u32 [%a+4096], %r5;");
    line("add.u32 %r5, %r5, " + word(threads_) + ";");
    line("setp.lt.u32 %p0, %r5, 1024;");
    line("@%p0 bra FILL;");
    line("bar.sync 0;");
  }

  /// %a: the address of a word of one of the two arrays.
  void address() {
    line(std::string("mov.u32 %base, ") + (dice_.chance(80) ? "tile;" : "other;"));
    const std::uint32_t offset = dice_.chance(50) ? 0 : dice_.below(8);
    switch (dice_.below(careful_ && dice_.chance(40) ? 6 : 12)) {
      case 0:
      case 1:
      case 2:
        line("mov.u32 %r6, %me;");
        break;
      case 3:
        line("add.u32 %r6, %me, " + word(dice_.between(1, 40)) + ";");
        break;
      case 4:
        line("sub.u32 %r6, " + word(threads_ - 1) + ", %me;");
        break;
      case 5:
        line("mul.lo.u32 %r6, %me, " + word(dice_.between(1, 4)) + ";");
        break;
      case 6:
        line("xor.b32 %r6, %me, " + word(dice_.between(1, 31)) + ";");
        break;
      case 7:
        line("shr.u32 %r6, %me, " + word(dice_.between(1, 5)) + ";");
        break;
      case 8:
        line("mov.u32 %r6, " + word(dice_.below(threads_)) + ";");
        break;
      case 9:
        line("mov.u32 %r6, " + counter() + ";");
        break;
      case 10:
        line("mad.lo.u32 %r6, " + counter() + ", " + word(threads_) + ", %me;");
        break;
      default:
        line("and.b32 %r6, %data, 63;");
        break;
    }
    if (dice_.chance(15)) {
      line("and.b32 %r7, " + counter() + ", 1;");
      line("mad.lo.u32 %r6, %r7, 256, %r6;");
    }
    line("and.b32 %r6, %r6, 1023;");
    if (offset != 0) line("add.u32 %r6, %r6, " + word(offset) + ";");
    line("min.u32 %r6, %r6, 1020;");
    line("shl.b32 %r6, %r6, 2;");
    line("add.u32 %a, %base, %r6;");
  }
  std::string counter() { return "%i" + word(dice_.below(3)); }

  /// A predicate in %q0, or nothing.
  std::string guard() {
    switch (dice_.below(9)) {
      case 0:
        line("setp.lt.u32 %q0, %me, " + word(dice_.below(threads_) + 1) + ";");
        return "@%q0 ";
      case 1:
        line("setp.eq.u32 %q0, %me, " + word(dice_.below(threads_)) + ";");
        return "@%q0 ";
      case 2:
        line("and.b32 %r8, %me, 1;");
        line("setp.eq.u32 %q0, %r8, 0;");
        return dice_.chance(50) ? "@%q0 " : "@!%q0 ";
      case 3:
        line("setp.lt.u32 %q0, %me, %n;");
        return "@%q0 ";
      case 4:
        line("setp.gt.u32 %q0, %data, 100;");
        return "@%q0 ";
      default:
        return {};
    }
  }

  void access() {
    one_access();
    if (careful_ && dice_.chance(94)) line("bar.sync 0;");
  }

  void one_access() {
    address();
    const std::string at = guard();
    switch (dice_.below(10)) {
      case 0:
      case 1:
      case 2:
      case 3:
        line("add.u32 %r9, %me, " + word(1000 * ++stores_) + ";");
        line(at + "st.shared.u32 [%a], %r9;");
        break;
      case 4:
        line("add.u32 %r9, %me, " + word(1 + ++stores_) + ";");
        line(at + "st.shared.u8 [%a+" + word(dice_.below(4)) + "], %r9;");
        break;
      case 5:
        line(at + "atom.shared.add.u32 %r10, [%a], %me;");
        break;
      case 6:
        line(at + "ld.volatile.shared.u32 %r10, [%a];");
        break;
      default:
        line("mov.u32 %r10, 0;");
        line(at + "ld.shared.u32 %r10, [%a];");
        line("add.u32 %sum, %sum, %r10;");
        break;
    }
  }

  void barrier() {
    switch (dice_.below(10)) {
      case 0:
        line("bar.warp.sync 0xffffffff;");
        break;
      case 1:
        line("barrier.sync.aligned 1;");
        break;
      case 2:
        line("bar.sync 0, " + word((threads_ + 31) / 32 * 32) + ";");
        break;
      default:
        line("bar.sync 0;");
        break;
    }
  }

  void part(unsigned depth) {
    const std::uint32_t count = dice_.between(1, 4);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t kind = dice_.below(100);
      if (depth > 0 && kind < 20) {
        loop(depth);
      } else if (depth > 0 && kind < 28) {
        branch(depth);
      } else if (kind < 62) {
        barrier();
      } else {
        access();
      }
    }
    if (dice_.chance(60)) access();
  }

  void loop(unsigned depth) {
    const std::string i = "%i" + word(depth);
    const std::string top = "L" + word(labels_++);
    const std::string limit = "%r" + word(11 + depth);
    line("mov.u32 " + i + ", 0;");
    if (dice_.chance(70))
      line("mov.u32 " + limit + ", " + word(dice_.between(1, 4)) + ";");
    else
      line("and.b32 " + limit + ", %n, 3;");
    text_ += top + ":\n";
    part(depth - 1);
    line("add.u32 " + i + ", " + i + ", 1;");
    line("setp.lt.u32 %p" + word(depth) + ", " + i + ", " + limit + ";");
    line("@%p" + word(depth) + " bra " + top + ";");
  }

  /// All threads take the same way, so that barriers may be in it.
  void branch(unsigned depth) {
    const std::string end = "L" + word(labels_++);
    line("setp.gt.u32 %p3, %n, " + word(dice_.below(6)) + ";");
    line("@%p3 bra " + end + ";");
    part(depth - 1);
    text_ += end + ":\n";
  }

  Dice dice_;
  std::uint32_t threads_ = 32;
  bool careful_ = false;  ///< a barrier after nearly every access
  unsigned labels_ = 0;
  unsigned stores_ = 0;
  std::string text_;
};

}  // namespace

Exchange random_exchange(std::uint64_t number) { return Generator(number).run(); }

LinePairs emulated_races(const Exchange& exchange, int seeds) {
  emulator::Device device(emulator::gpu_named("sm_80"));
  emulator::Program program = emulator::Program::load(device, exchange.ptx, "exchange.ptx");
  const std::uint64_t threads = exchange.block.count();
  std::vector<std::uint32_t> input(static_cast<std::size_t>(threads));
  Dice dice(11);
  for (std::uint32_t& value : input) value = dice.below(256);
  const std::uint64_t in = device.allocate(threads * 4, "in");
  device.write(in, std::as_bytes(std::span(input)));
  const std::uint64_t out = device.allocate(threads * 4, "out");
  struct {
    std::uint64_t in, out;
    std::uint32_t n;
  } const arguments{in, out, exchange.n};
  std::vector<std::byte> block(20);
  std::memcpy(block.data(), &arguments, block.size());
  emulator::Launch launch;
  launch.kernel = "k";
  launch.grid = {1, 1, 1};
  launch.block = exchange.block;
  launch.parameters = block;
  LinePairs found;
  for (int seed = 0; seed < seeds; ++seed) {
    emulator::Options options;
    options.seed = static_cast<std::uint64_t>(seed);
    const emulator::Result result = emulator::run(program, launch, options);
    for (const emulator::RunFinding& finding : result.findings) {
      if (finding.rule == emulator::Rule::SharedRace) {
        found.insert(line_pair(finding.finding.line, finding.other.line));
      } else if (finding.finding.severity == Severity::Error) {
        throw std::runtime_error(emulator::to_text(finding));
      }
    }
  }
  return found;
}

LinePairs reported_races(const std::vector<Finding>& findings, Severity severity) {
  LinePairs found;
  for (const Finding& finding : findings) {
    if (finding.rule != "shared-race" || finding.severity != severity) continue;
    found.insert(line_pair(finding.line, finding.other_line));
    for (const std::string& detail : finding.details) {
      if (!detail.starts_with("also with: ")) continue;
      for (std::size_t at = detail.find("line "); at != std::string::npos;
           at = detail.find("line ", at + 1)) {
        const auto line = static_cast<std::uint32_t>(std::stoul(detail.substr(at + 5)));
        found.insert(line_pair(finding.line, line));
      }
    }
  }
  return found;
}

}  // namespace ptxgen::test
