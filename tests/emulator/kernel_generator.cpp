// tests/emulator/kernel_generator.cpp - random kernels that keep within their memory
#include "kernel_generator.hpp"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "ptx/dice.hpp"

namespace ptxgen::test {
namespace {

constexpr std::uint32_t kValues = 10;      // %r0 .. %r9: anything
constexpr std::uint32_t kOwnWords = 4;     // of shared memory, a thread
constexpr std::uint32_t kLocalWords = 16;  // a thread
constexpr unsigned kDepth = 3;

class Generator {
 public:
  Generator(std::uint64_t number, RaceKind races)
      : dice_(number * 0x2545f4914f6cdd1du + 77), races_(races) {}

  RandomKernel run() {
    constexpr std::uint32_t kThreads[] = {32, 64, 96, 128, 160, 1, 17, 40, 100};
    threads_ = dice_.pick(kThreads);
    whole_warps_ = threads_ % 32 == 0;
    RandomKernel result;
    result.grid = {dice_.between(1, 5), dice_.between(1, 2), 1};
    result.block = threads_ % 32 == 0 && dice_.chance(40) ? emulator::Dim3{8, 4, threads_ / 32}
                                                          : emulator::Dim3{threads_, 1, 1};
    head();
    const std::uint32_t parts = dice_.between(3, 7);
    for (std::uint32_t i = 0; i < parts; ++i) {
      block(kDepth, 1, 4);
      together();
    }
    tail();
    result.ptx = std::move(text_);
    return result;
  }

 private:
  void line(const std::string& text) { text_ += "  " + text + "\n"; }
  std::string value() { return "%r" + std::to_string(dice_.below(kValues)); }
  std::string source() {
    if (dice_.chance(80)) return value();
    constexpr const char* kConstants[] = {"0", "1", "-1", "31", "0x80000000", "12345"};
    return dice_.pick(kConstants);
  }
  std::string predicate() { return "%p" + std::to_string(dice_.below(4)); }
  std::string single() { return "%f" + std::to_string(dice_.below(4)); }
  std::string wide() { return "%rd" + std::to_string(dice_.below(4)); }
  std::string label() { return "L" + std::to_string(labels_++); }
  std::string guard() {
    if (!dice_.chance(25)) return {};
    return (dice_.chance(50) ? "@" : "@!") + predicate() + " ";
  }

  void head() {
    text_ =
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".func (.param .b32 result) helper(.param .b32 first, .param .b32 second)\n{\n"
        "  .reg .b32 %x, %y;\n  .reg .pred %less;\n"
        "  ld.param.u32 %x, [first];\n  ld.param.u32 %y, [second];\n"
        "  setp.lt.u32 %less, %x, %y;\n  @%less bra OUT;\n"
        "  shr.u32 %x, %x, 3;\n  xor.b32 %x, %x, %y;\n"
        "OUT:\n  add.u32 %x, %x, 7;\n  st.param.b32 [result], %x;\n  ret;\n}\n";
    text_ += ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 sum)\n{\n";
    text_ += "  .shared .align 16 .b8 tile[" + std::to_string(threads_ * kOwnWords * 4) + "];\n";
    text_ += "  .shared .align 4 .b8 common[64];\n  .local .align 16 .b8 stack[64];\n";
    line(".reg .pred %p<4>, %q<4>;");
    line(".reg .b32 %r<10>, %t<8>, %c<8>, %me, %gid;");
    line(".reg .f32 %f<4>; .reg .b64 %rd<4>, %in, %out, %sum, %a, %own;");
    line("ld.param.u64 %in, [in];");
    line("ld.param.u64 %out, [out];");
    line("ld.param.u64 %sum, [sum];");
    if (dice_.chance(50)) {
      for (const char* pointer : {"in", "out", "sum"}) {
        line("cvta.to.global.u64 %" + std::string(pointer) + ", %" + pointer + ";");
      }
    }
    // The thread's number in its block and in the grid.
    line("mov.u32 %t0, %tid.x;");
    line("mov.u32 %t1, %tid.y;");
    line("mov.u32 %t2, %tid.z;");
    line("mov.u32 %t3, %ntid.x;");
    line("mov.u32 %t4, %ntid.y;");
    line("mad.lo.u32 %t2, %t2, %t4, %t1;");
    line("mad.lo.u32 %me, %t2, %t3, %t0;");
    line("mov.u32 %t0, %ctaid.y;");
    line("mov.u32 %t1, %nctaid.x;");
    line("mov.u32 %t2, %ctaid.x;");
    line("mad.lo.u32 %t0, %t0, %t1, %t2;");
    line("mad.lo.u32 %gid, %t0, " + std::to_string(threads_) + ", %me;");
    line("mul.wide.u32 %a, %gid, " + std::to_string(kOutputWords * 4) + ";");
    line("add.s64 %own, %out, %a;");
    for (std::uint32_t i = 0; i < kValues; ++i) {
      const std::string addend = std::to_string(dice_.below(1000));
      const std::string factor = std::to_string(dice_.below(100000));
      line("mad.lo.u32 %r" + std::to_string(i) + ", %gid, " + factor + ", " + addend + ";");
    }
    for (unsigned i = 0; i < 4; ++i) {
      const std::string n = std::to_string(i);
      line("setp.lt.u32 %p" + n + ", %me, " + std::to_string(dice_.below(threads_ + 1)) + ";");
      line("cvt.rn.f32.u32 %f" + n + ", %r" + n + ";");
      line("mul.wide.s32 %rd" + n + ", %r" + n + ", %r5;");
    }
    for (std::uint32_t i = 0; i < kOwnWords; ++i) {
      shared_address(std::to_string(i), "%me");
      line("st.shared.u32 [%t0], %r" + std::to_string(i) + ";");
    }
    for (std::uint32_t i = 0; i < kLocalWords; ++i) {
      line("st.local.u32 [stack+" + std::to_string(4 * i) + "], %r" + std::to_string(i % kValues) +
           ";");
    }
  }

  void tail() {
    if (dice_.chance(30)) line("@" + predicate() + " exit;");
    for (std::uint32_t i = 0; i < 4; ++i) {
      line("st.global.u32 [%own+" + std::to_string(4 * i) + "], %r" + std::to_string(i) + ";");
    }
    line("mov.b32 %t0, %f0;");
    line("st.global.v4.u32 [%own+16], {%t0, %r5, %r6, %r7};");
    line("ret;");
    text_ += "}\n";
  }

  /// %t0: the place of word `which` of a thread.
  void shared_address(const std::string& which, const std::string& thread) {
    line("mov.u32 %t0, tile;");
    line("mad.lo.u32 %t1, " + which + ", " + std::to_string(threads_) + ", " + thread + ";");
    line("mad.lo.u32 %t0, %t1, 4, %t0;");
  }

  /// Statements in places where all threads of the block come together.
  void together() {
    switch (dice_.below(whole_warps_ ? 6 : 3)) {
      case 0:
      case 1: {
        // Words of another thread, between two barriers.
        const std::string to = value();
        line("bar.sync 0;");
        line("add.u32 %t2, %me, " + std::to_string(dice_.below(threads_)) + ";");
        line("rem.u32 %t2, %t2, " + std::to_string(threads_) + ";");
        shared_address(std::to_string(dice_.below(kOwnWords)), "%t2");
        line("ld.shared.u32 " + to + ", [%t0];");
        line("bar.sync 0;");
        break;
      }
      case 2:
        line("setp.gt.u32 %q0, " + value() + ", %me;");
        line(dice_.chance(50) ? "barrier.sync.aligned 1;" : "bar.sync 2;");
        break;
      case 3: {
        constexpr const char* kModes[] = {"bfly", "up", "down", "idx"};
        const std::string mode = dice_.pick(kModes);
        const std::string last = mode == "up" ? "0" : "31";
        line("shfl.sync." + mode + ".b32 " + value() + "|%p1, " + value() + ", " +
             std::to_string(dice_.below(32)) + ", " + last + ", -1;");
        break;
      }
      case 4:
        line("vote.sync.ballot.b32 " + value() + ", " + predicate() + ", -1;");
        break;
      default:
        line("redux.sync.add.u32 " + value() + ", " + value() + ", -1;");
        break;
    }
    if (races_ == RaceKind::Shared && dice_.chance(60)) {
      line("and.b32 %t0, " + value() + ", 15;");
      line("mov.u32 %t1, common;");
      line("mad.lo.u32 %t0, %t0, 4, %t1;");
      line("st.shared.u32 [%t0], " + value() + ";");
      line("ld.shared.u32 " + value() + ", [common+" + std::to_string(4 * dice_.below(16)) + "];");
    }
    if (races_ == RaceKind::Global && dice_.chance(60)) {
      line("st.global.u32 [%sum+" + std::to_string(4 * dice_.below(kSumWords)) + "], " + value() +
           ";");
      line("ld.global.u32 " + value() + ", [%sum+" + std::to_string(4 * dice_.below(kSumWords)) +
           "];");
    }
  }

  void block(unsigned depth, std::uint32_t min, std::uint32_t max) {
    const std::uint32_t count = dice_.between(min, max);
    for (std::uint32_t i = 0; i < count; ++i) statement(depth);
  }

  void statement(unsigned depth) {
    const std::uint32_t kind = dice_.below(100);
    if (depth > 0 && kind < 14) return branch(depth);
    if (depth > 0 && kind < 24) return loop(depth);
    if (depth > 0 && kind < 28) return table(depth);
    if (kind < 33) return call();
    if (kind < 60) return memory();
    if (kind < 70) return compare();
    arithmetic();
  }

  void branch(unsigned depth) {
    const std::string otherwise = label();
    const std::string end = label();
    const bool has_else = dice_.chance(60);
    line("@" + predicate() + " bra " + otherwise + ";");
    block(depth - 1, 1, 3);
    if (has_else) line("bra " + end + ";");
    text_ += otherwise + ":\n";
    if (has_else) {
      block(depth - 1, 1, 3);
      text_ += end + ":\n";
    }
  }

  void loop(unsigned depth) {
    const std::string counter = "%c" + std::to_string(2 * depth - 1);
    const std::string limit = "%c" + std::to_string(2 * depth);
    const std::string top = label();
    line("mov.u32 " + counter + ", 0;");
    line("and.b32 " + limit + ", " + value() + ", " + (dice_.chance(50) ? "3;" : "7;"));
    text_ += top + ":\n";
    block(depth - 1, 1, 3);
    line("add.u32 " + counter + ", " + counter + ", 1;");
    line("setp.le.u32 %q1, " + counter + ", " + limit + ";");
    line("@%q1 bra " + top + ";");
  }

  void table(unsigned depth) {
    const std::uint32_t count = dice_.between(2, 4);
    const std::string name = "T" + std::to_string(labels_++);
    const std::string end = label();
    std::vector<std::string> targets;
    std::string list;
    for (std::uint32_t i = 0; i < count; ++i) {
      targets.push_back(label());
      list += (i == 0 ? "" : ", ") + targets.back();
    }
    line("rem.u32 %t0, " + value() + ", " + std::to_string(count) + ";");
    text_ += name + ": .branchtargets " + list + ";\n";
    line("brx.idx %t0, " + name + ";");
    for (const std::string& target : targets) {
      text_ += target + ":\n";
      block(depth - 1, 1, 2);
      if (target != targets.back()) line("bra " + end + ";");
    }
    text_ += end + ":\n";
  }

  void call() {
    line("{ .param .b32 a0; .param .b32 a1; .param .b32 back;");
    line("st.param.b32 [a0], " + value() + ";");
    line("st.param.b32 [a1], " + value() + ";");
    line("call (back), helper, (a0, a1);");
    line("ld.param.b32 " + value() + ", [back]; }");
  }

  void memory() {
    switch (dice_.below(9)) {
      case 0:
      case 1: {  // one element of the input, of any width
        constexpr const char* kForms[] = {"u8", "s8", "u16", "s16", "u32", "b32"};
        constexpr const char* kMasks[] = {"1023", "1023", "1022", "1022", "1020", "1020"};
        const std::size_t form = dice_.below(std::size(kForms));
        line("and.b32 %t0, " + value() + ", " + kMasks[form] + ";");
        line("cvt.u64.u32 %a, %t0;");
        line("add.s64 %a, %in, %a;");
        line(guard() + "ld.global." + kForms[form] + " " + value() + ", [%a];");
        break;
      }
      case 2:
        line("and.b32 %t0, " + value() + ", 1008;");
        line("cvt.u64.u32 %a, %t0;");
        line("add.s64 %a, %in, %a;");
        if (dice_.chance(50)) {
          line("ld.global.v4.u32 {%r1, %r4, %r7, %r9}, [%a];");
        } else {
          line(guard() + "ld.global.nc.v2.u64 {%rd1, %rd2}, [%a];");
        }
        break;
      case 3:
        line(guard() + "st.global.u32 [%own+" + std::to_string(4 * dice_.below(kOutputWords)) +
             "], " + source() + ";");
        break;
      case 4: {
        shared_address(std::to_string(dice_.below(kOwnWords)), "%me");
        line(guard() + (dice_.chance(50) ? "st.shared.u32 [%t0], " + value() + ";"
                                         : "st.shared.u8 [%t0+1], " + value() + ";"));
        break;
      }
      case 5:
        shared_address(std::to_string(dice_.below(kOwnWords)), "%me");
        line(guard() + "ld.shared." + (dice_.chance(50) ? "u32 " : "s16 ") + value() + ", [%t0];");
        break;
      case 6:
        local_address();
        line(guard() + "st.local.u32 [%t0], " + value() + ";");
        break;
      case 7:
        local_address();
        line(guard() + "ld.local.u32 " + value() + ", [%t0];");
        break;
      default:
        // What all threads add is the same in any order.
        if (races_ != RaceKind::Global) {
          line(guard() + "red.global.add.u32 [%sum+" + std::to_string(4 * dice_.below(kSumWords)) +
               "], " + value() + ";");
        }
        break;
    }
  }

  void local_address() {
    line("and.b32 %t1, " + value() + ", 15;");
    line("mov.u32 %t0, stack;");
    line("mad.lo.u32 %t0, %t1, 4, %t0;");
  }

  void compare() {
    constexpr const char* kInts[] = {"eq.u32", "ne.s32", "lt.u32", "le.s32", "gt.u32", "ge.s32"};
    constexpr const char* kFloats[] = {"lt.f32", "gtu.f32", "eq.f32", "neu.f32", "num.f32"};
    if (dice_.chance(70)) {
      line(guard() + "setp." + dice_.pick(kInts) + " " + predicate() + ", " + value() + ", " +
           source() + ";");
    } else {
      line(guard() + "setp." + dice_.pick(kFloats) + " " + predicate() + ", " + single() + ", " +
           single() + ";");
    }
  }

  void arithmetic() {
    constexpr const char* kTwo[] = {
        "add.u32", "sub.s32",      "mul.lo.u32", "and.b32",  "or.b32",     "xor.b32",    "min.s32",
        "max.u32", "shl.b32",      "shr.u32",    "shr.s32",  "mul.hi.u32", "mul.hi.s32", "min.u32",
        "max.s32", "mul24.lo.s32", "add.cc.u32", "addc.u32", "sub.cc.u32", "subc.u32"};
    constexpr const char* kOne[] = {"not.b32", "neg.s32",  "abs.s32",   "popc.b32",
                                    "clz.b32", "brev.b32", "bfind.u32", "mov.b32"};
    constexpr const char* kThree[] = {"mad.lo.u32", "bfe.u32",        "bfe.s32",
                                      "prmt.b32",   "sad.u32",        "dp4a.u32.u32",
                                      "mad.hi.s32", "shf.l.wrap.b32", "shf.r.clamp.b32"};
    constexpr const char* kFloat[] = {"add.f32", "sub.f32", "mul.rz.f32", "mul.ftz.f32",
                                      "min.f32", "max.f32", "add.rp.f32", "div.rn.f32"};
    const std::string at = guard();
    switch (dice_.below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        line(at + dice_.pick(kTwo) + " " + value() + ", " + value() + ", " + source() + ";");
        break;
      case 4:
        line(at + dice_.pick(kOne) + " " + value() + ", " + value() + ";");
        break;
      case 5:
        line(at + dice_.pick(kThree) + " " + value() + ", " + value() + ", " + value() + ", " +
             value() + ";");
        break;
      case 6:
        line(at + "selp.b32 " + value() + ", " + value() + ", " + source() + ", " + predicate() +
             ";");
        break;
      case 7:
        line(at + dice_.pick(kFloat) + " " + single() + ", " + single() + ", " + single() + ";");
        break;
      case 8:
        line(at + "fma.rn.f32 " + single() + ", " + single() + ", " + single() + ", " + single() +
             ";");
        break;
      case 9:
        if (dice_.chance(50)) {
          line(at + "cvt.rn.f32.s32 " + single() + ", " + value() + ";");
        } else {
          line(at + "mov.b32 " + value() + ", " + single() + ";");
        }
        break;
      case 10:
        if (dice_.chance(50)) {
          line(at + "mad.wide.u32 " + wide() + ", " + value() + ", " + value() + ", " + wide() +
               ";");
        } else {
          line(at + "add.s64 " + wide() + ", " + wide() + ", " + wide() + ";");
        }
        break;
      default:
        if (dice_.chance(50)) {
          line(at + "cvt.u32.u64 " + value() + ", " + wide() + ";");
        } else {
          line("or.b32 %t0, " + value() + ", 1;");
          line(at + (dice_.chance(50) ? "div.s32 " : "rem.u32 ") + value() + ", " + value() +
               ", %t0;");
        }
        break;
    }
  }

  Dice dice_;
  RaceKind races_;
  std::uint32_t threads_ = 32;
  bool whole_warps_ = true;
  unsigned labels_ = 0;
  std::string text_;
};

}  // namespace

RandomKernel random_kernel(std::uint64_t number, RaceKind races) {
  return Generator(number, races).run();
}

}  // namespace ptxgen::test
