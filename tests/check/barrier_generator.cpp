// tests/check/barrier_generator.cpp - random kernels full of barriers
#include "check/barrier_generator.hpp"

#include <random>
#include <vector>

#include "check/barrier_corpus.hpp"

namespace ptxgen::test {
namespace {

class Writer {
 public:
  explicit Writer(std::uint64_t seed) : random_(seed) {}

  BarrierKernel write() {
    constexpr std::array<std::array<std::uint32_t, 3>, 6> kShapes = {
        {{96, 1, 1}, {64, 1, 1}, {32, 1, 1}, {128, 1, 1}, {48, 1, 1}, {32, 2, 1}}};
    BarrierKernel result;
    result.block = kShapes[pick(kShapes.size())];
    result.shape_known = chance(75);
    // How often a choice is one that all threads agree on.
    uniform_ = static_cast<unsigned>(30 + 35 * pick(3));
    named_ = chance(35);
    jumps_ = chance(25);
    const bool functions = chance(25);
    if (functions) {
      function_ =
          ".func helper(.reg .b32 %arg) {\n"
          "  .reg .pred %p<40>;\n  .reg .b32 %r<80>, %tx, %n;\n"
          "  mov.u32 %tx, %tid.x;\n  mov.u32 %n, %arg;\n";
      in_function_ = true;
      sequence(2, 2);
      flush_labels();
      function_ += body_ + "  ret;\n}\n";
      body_.clear();
      in_function_ = false;
      has_function_ = true;
      next_p_ = next_r_ = 0;
    }
    for (int i = 0; i < 10; ++i) line("mov.u32 %r" + std::to_string(60 + i) + ", 0");
    sequence(0, 4);
    flush_labels();
    line("ret");
    result.ptx = barrier_kernel(body_, function_);
    return result;
  }

 private:
  std::size_t pick(std::size_t count) {
    return static_cast<std::size_t>(random_() % static_cast<std::uint64_t>(count));
  }
  bool chance(unsigned percent) { return pick(100) < percent; }
  template <class... Text>
  std::string any(Text... text) {
    const std::array<std::string, sizeof...(Text)> all = {std::string(text)...};
    return all[pick(all.size())];
  }
  static std::string text(std::size_t value) { return std::to_string(value); }

  void line(const std::string& statement) { body_ += "  " + statement + ";\n"; }
  void label(const std::string& name) { body_ += name + ":\n"; }
  std::string new_label() { return "L" + text(labels_++); }
  std::string new_p() { return "%p" + text(next_p_++ % 40); }
  std::string new_r() { return "%r" + text(next_r_++ % 60); }

  // Conditions -----------------------------------------------------------------------------------

  std::string compare(const std::string& a, const std::string& b) {
    const std::string p = new_p();
    line("setp." + any("lt", "ge", "eq", "ne", "gt") + ".u32 " + p + ", " + a + ", " + b);
    return p;
  }
  std::string number() {
    return any("0", "1", "7", "16", "17", "31", "32", "33", "64", "95", "96");
  }

  std::string index_condition() {
    const std::string r = new_r();
    switch (pick(6)) {
      case 0:
        return compare("%tx", number());
      case 1:
        line("and.b32 " + r + ", %tx, " + any("1", "3", "31", "15"));
        return compare(r, any("0", "1", "2", "16"));
      case 2:
        line("shr.u32 " + r + ", %tx, 5");
        return compare(r, any("0", "1", "2", "3"));
      case 3:
        line("mov.u32 " + r + ", %laneid");
        return compare(r, any("0", "5", "16", "31"));
      case 4: {
        const std::string base = new_r();
        line("mov.u32 " + base + ", %ctaid.x");
        line("mov.u32 " + r + ", %ntid.x");
        line("mad.lo.u32 " + r + ", " + base + ", " + r + ", %tx");
        return compare(r, "%n");
      }
      default:
        line("mov.u32 " + r + ", %tid." + any("x", "y", "z"));
        return compare(r, any("0", "1", "40"));
    }
  }

  std::string loaded() {
    if (in_function_) return "%n";
    const std::string r = new_r();
    if (chance(60)) {
      line("mul.wide.u32 %rd1, %tx, 4");
      line("add.u64 %rd1, %data, %rd1");
      line("ld.global.u32 " + r + ", [%rd1]");
    } else {
      line("ld.global.u32 " + r + ", [%data+" + text(4 * pick(8)) + "]");
    }
    return r;
  }

  std::string uniform_condition() {
    const std::string r = new_r();
    switch (pick(7)) {
      case 0:
        line("mov.u32 " + r + ", %ctaid.x");
        return compare(r, any("0", "1"));
      case 1:
        if (!counters_.empty()) return compare(counters_.back(), any("0", "1", "2"));
        return compare("%n", number());
      case 2: {
        // A value that follows from the index and is the same for all.
        line("shr.u32 " + r + ", %tx, 10");
        return compare(r, "0");
      }
      case 3: {
        const std::string from = chance(50) ? index_condition() : compare(loaded(), number());
        if (divergent_ != 0) return compare("%n", number());
        const std::string p = new_p();
        line(any("bar.red.or.pred ", "bar.red.and.pred ", "barrier.red.or.pred ") + p + ", 0, " +
             from);
        return p;
      }
      case 4:
        line("ld.const.u32 " + r + ", [table+" + text(4 * pick(4)) + "]");
        return compare(r, any("1", "2", "3"));
      default:
        return compare("%n", number());
    }
  }

  std::string vote_condition() {
    const std::string from = chance(50) ? index_condition() : compare(loaded(), number());
    const std::string p = new_p();
    if (divergent_ != 0) {
      const std::string r = new_r();
      line("activemask.b32 " + r);
      line("vote.sync." + any("any", "all") + ".pred " + p + ", " + from + ", " + r);
    } else {
      line("vote.sync." + any("any", "all") + ".pred " + p + ", " + from + ", 0xffffffff");
    }
    return p;
  }

  /// A predicate, and whether it may part threads.
  std::string condition(bool& parts) {
    parts = !chance(uniform_);
    if (!parts) {
      const std::string p = uniform_condition();
      if (!chance(20)) return p;
      const std::string q = uniform_condition(), both = new_p();
      line(any("and", "or", "xor") + ".pred " + both + ", " + p + (chance(30) ? ", !" : ", ") + q);
      return both;
    }
    switch (pick(8)) {
      case 0:
        return compare(loaded(), number());
      case 1:
        return vote_condition();
      case 2: {
        const std::string p = index_condition(), q = uniform_condition(), both = new_p();
        line(any("and", "or") + ".pred " + both + ", " + p + (chance(30) ? ", !" : ", ") + q);
        return both;
      }
      case 3:
        if (!counters_.empty()) return compare(counters_.back(), "%tx");
        return index_condition();
      default:
        return index_condition();
    }
  }

  // Barriers -------------------------------------------------------------------------------------

  void barrier() {
    std::string guard;
    if (chance(8)) {
      bool parts = false;
      guard = "@" + any("", "!") + condition(parts) + " ";
    }
    const std::string r = new_r();
    if (named_ && chance(60)) return named_barrier(guard);
    switch (pick(10)) {
      case 0:
        return line(guard + "barrier.sync 0");
      case 1:
        return line(guard + "bar.red.popc.u32 " + r + ", 0, " +
                    (next_p_ == 0 ? "%p39" : "%p" + text((next_p_ - 1) % 40)));
      case 2:
        return line(guard + "bar.sync " + any("1", "2", "15"));
      case 3:
        if (divergent_ == 0) return line(guard + "bar.warp.sync 0xffffffff");
        return line(guard + "bar.warp.sync " + any("0xffffffff", "0xffff", "0xffff0000", "1"));
      case 4: {
        if (chance(70)) return line(guard + "bar.sync 0");
        line(any("and.b32 " + r + ", %n, 3", "and.b32 " + r + ", %tx, 1",
                 "shr.u32 " + r + ", %tx, 5"));
        return line(guard + "bar.sync " + r);
      }
      default:
        return line(guard + any("bar.sync 0", "bar.sync 0", "barrier.sync.aligned 0"));
    }
  }
  void named_barrier(const std::string& guard) {
    const std::string id = any("1", "2", "3");
    const std::string count = any("32", "64", "96", "128");
    switch (pick(6)) {
      case 0:
        return line(guard + "bar.arrive " + id + ", " + count);
      case 1: {
        const std::string r = new_r();
        line("shr.u32 " + r + ", %tx, 5");
        return line(guard + "bar.sync " + r + ", 32");
      }
      case 2:
        return line(guard + "barrier.sync " + id + ", " + count);
      default:
        return line(guard + "bar.sync " + id + ", " + count);
    }
  }

  /// Warps with roles of their own, in the ways in which that is done.
  void specialise() {
    const std::string p = new_p();
    const std::string edge = any("32", "64");
    const std::string rest = text(pick(2) == 0 ? 32 : 64);
    const std::string both = any("64", "96", "128");
    const std::string other = new_label(), join = new_label();
    line("setp.ge.u32 " + p + ", %tx, " + edge);
    line("@" + p + " bra " + other);
    ++divergent_;
    const bool pair = chance(50);
    line(pair ? "bar.sync 4, " + both : "bar.sync 5, " + edge);
    if (pair && chance(50)) line("bar.arrive 5, " + both);
    line("bra.uni " + join);
    label(other);
    line(pair ? any("bar.arrive 4, ", "bar.sync 4, ") + both : "bar.sync 6, " + rest);
    if (pair && chance(50)) line("bar.sync 5, " + both);
    label(join);
    --divergent_;
  }

  // Statements -----------------------------------------------------------------------------------

  void sequence(int depth, std::size_t max) {
    const std::size_t count = 1 + pick(max);
    for (std::size_t i = 0; i < count; ++i) {
      statement(depth);
      if (!pending_.empty() && chance(40)) {
        label(pending_.back());
        pending_.pop_back();
      }
    }
  }
  void statement(int depth) {
    const std::size_t kind = pick(100);
    if (kind < 36 || depth > 3) {
      barrier();
    } else if (kind < 58) {
      branch(depth);
    } else if (kind < 76) {
      loop(depth);
    } else if (kind < 81) {
      leave();
    } else if (kind < 86 && has_function_) {
      call();
    } else if (kind < 90 && jumps_) {
      bool parts = false;
      const std::string p = condition(parts);
      pending_.push_back(new_label());
      if (parts) ++divergent_;  // until the end, for all that is known
      line("@" + p + " bra " + pending_.back());
    } else if (kind < 94 && named_) {
      specialise();
    } else {
      const std::string r = "%r" + text(60 + pick(5));
      line(any("add.u32 " + r + ", " + r + ", 1", "mov.u32 " + r + ", %tx", "mov.u32 " + r + ", %n",
               "add.u32 " + r + ", " + r + ", %tx"));
    }
  }

  void branch(int depth) {
    bool parts = false;
    const std::string p = condition(parts);
    const std::string join = new_label(), other = new_label();
    const bool has_else = chance(45);
    line("@" + any("", "!") + p + " bra " + (has_else ? other : join));
    divergent_ += parts ? 1 : 0;
    // What threads do apart is often nothing with barriers.
    if (parts && chance(55))
      line("add.u32 %r60, %r60, 1");
    else
      sequence(depth + 1, 2);
    if (has_else) {
      line("bra" + std::string(chance(50) ? ".uni " : " ") + join);
      label(other);
      if (parts && chance(55))
        line("add.u32 %r61, %r61, %tx");
      else
        sequence(depth + 1, 2);
    }
    divergent_ -= parts ? 1 : 0;
    label(join);
  }

  void loop(int depth) {
    const std::string counter = new_r(), bound = new_r();
    const bool parts = !chance(uniform_);
    if (parts) {
      line(any("and.b32 " + bound + ", %tx, 3", "and.b32 " + bound + ", " + loaded() + ", 3",
               "shr.u32 " + bound + ", %tx, 5"));
    } else {
      line(any("and.b32 " + bound + ", %n, 3", "mov.u32 " + bound + ", 2",
               "mov.u32 " + bound + ", 3"));
    }
    line("mov.u32 " + counter + ", " + (chance(12) ? "%tx" : "0"));
    const std::string head = new_label(), out = new_label();
    const bool tested_first = chance(50);
    label(head);
    const std::string p = new_p();
    if (tested_first) {
      line("setp.ge.u32 " + p + ", " + counter + ", " + bound);
      line("@" + p + " bra " + out);
    }
    divergent_ += parts ? 1 : 0;
    counters_.push_back(counter);
    if (parts && chance(55))
      line("add.u32 %r62, %r62, 1");
    else
      sequence(depth + 1, 2);
    if (chance(20)) {
      bool breaks_apart = false;
      const std::string q = condition(breaks_apart);
      line("@" + q + " bra " + out);
    }
    if (chance(12)) sequence(depth + 1, 1);
    counters_.pop_back();
    divergent_ -= parts ? 1 : 0;
    line("add.u32 " + counter + ", " + counter + ", 1");
    if (tested_first) {
      line("bra " + head);
    } else {
      line("setp.lt.u32 " + p + ", " + counter + ", " + bound);
      line("@" + p + " bra " + head);
    }
    label(out);
  }

  void leave() {
    bool parts = false;
    const std::string p = condition(parts);
    line("@" + any("", "!") + p + " " + any("ret", "exit"));
    if (parts) ++divergent_;
  }

  void call() {
    if (in_function_) return;
    std::string guard;
    if (chance(25)) {
      bool parts = false;
      guard = "@" + condition(parts) + " ";
    }
    line(guard + "call helper, (" + any("%n", "%tx", "%n") + ")");
  }

  void flush_labels() {
    for (const std::string& name : pending_) label(name);
    pending_.clear();
  }

  std::mt19937_64 random_;
  std::string body_, function_;
  std::vector<std::string> pending_;   // labels that are jumped to and not placed yet
  std::vector<std::string> counters_;  // of the loops around
  std::size_t labels_ = 0, next_p_ = 0, next_r_ = 0;
  unsigned uniform_ = 60;
  int divergent_ = 0;
  bool named_ = false, jumps_ = false, in_function_ = false, has_function_ = false;
};

}  // namespace

BarrierKernel random_barrier_kernel(std::uint64_t seed) { return Writer(seed).write(); }

}  // namespace ptxgen::test
