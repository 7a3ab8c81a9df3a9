// tests/optimize/random_program.cpp - random kernels that give passes work
#include "random_program.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "loop_plan.hpp"
#include "program_writer.hpp"

namespace ptxgen::test {

namespace {

constexpr unsigned kDepth = 3;

/// Where statements are.
struct Place {
  unsigned depth = kDepth;  ///< how many levels may open in here
  bool together = true;     ///< all threads of the block come here together
  unsigned trips = 24;      ///< how often loops in here may run in all
};

/// A loop that is being written.
struct OpenLoop {
  LoopPlan plan;
  std::string iv;
  struct Bound {
    std::string text;
    bool uniform = true;
  };
  std::vector<Bound> bounds;  ///< what conditions in the body may compare with
  std::string leave, next;
  bool may_leave = false;
};

class Generator : ProgramWriter {
 public:
  Generator(std::uint64_t number, Flavour flavour)
      : ProgramWriter(number * 0x2545f4914f6cdd1du + static_cast<unsigned>(flavour) * 7919u + 5,
                      flavour) {
    result_.number = number;
  }

  RandomProgram run() {
    constexpr std::uint32_t kThreads[] = {32, 64, 64, 40, 17};
    result_.threads = dice_.pick(kThreads);
    result_.blocks = dice_.between(1, 2);
    whole_warps_ = result_.threads % 32 == 0;
    begin();
    const std::uint32_t parts = dice_.between(2, 5);
    for (std::uint32_t i = 0; i < parts; ++i) block({}, 1, 4);
    end();
    assemble();
    return std::move(result_);
  }

 private:
  void begin();
  void end();
  void assemble();

  void block(Place place, std::uint32_t min, std::uint32_t max);
  void statement(Place place);
  void branch(Place place);
  void decided_branch(Place place);
  void unreachable(Place place);
  void table(Place place);
  void scope(Place place);
  void call();
  void exchange();

  void loop(Place place);
  std::string loop_value(const LoopPlan& plan, std::uint64_t value, bool varies);
  void step(const OpenLoop& loop, const std::string& by);
  void iv_condition(Place place);
  void guarded(const std::string& at);

  std::string head_;
  std::vector<OpenLoop> loops_;
  bool whole_warps_ = true;
  unsigned tables_ = 0;
};

void Generator::begin() {
  line("ld.param.u64 %in, [in];");
  line("ld.param.u64 %out, [out];");
  line("ld.param.u64 %sum, [sum];");
  if (dice_.chance(50)) {
    for (const char* pointer : {"%in", "%out", "%sum"}) {
      line(std::string("cvta.to.global.u64 ") + pointer + ", " + pointer + ";");
    }
  }
  line("mov.u32 %me, %tid.x;");
  line("mov.u32 %gid, %ctaid.x;");
  line("mad.lo.u32 %gid, %gid, " + std::to_string(result_.threads) + ", %me;");
  line("mul.lo.u32 %far, %gid, " + std::to_string(2 * dice_.below(16) + 1) + ";");
  line("and.b32 %far, %far, 15;");
  line("mul.wide.u32 %a, %far, 8;");
  line("add.s64 %a, %in, %a;");
  for (std::size_t k = 0; k < kKinds; ++k) {
    const auto kind = static_cast<Kind>(k);
    const unsigned bytes = info(kind).bits / 8;
    for (unsigned i = 0; i < info(kind).count; ++i) {
      line("ld.global" + std::string(info(kind).declare) + " " + info(kind).pool +
           std::to_string(i) + ", [%a+" + std::to_string(bytes * dice_.below(64 / bytes)) + "];");
    }
  }
  for (unsigned i = 0; i < kPredicates; ++i) {
    const std::string n = std::to_string(i);
    line("setp.lt.u32 %p" + n + ", %me, " + std::to_string(dice_.below(result_.threads + 1)) + ";");
  }
}

void Generator::end() {
  if (dice_.chance(20)) line("@" + predicate() + (dice_.chance(50) ? " exit;" : " ret;"));
  std::uint32_t word = kOwnWords;
  for (const Kind kind :
       {Kind::W, Kind::D, Kind::R, Kind::F, Kind::HH, Kind::EE, Kind::S, Kind::H, Kind::E}) {
    const std::uint32_t words = info(kind).bits == 64 ? 2 : 1;
    for (unsigned i = 0; i < info(kind).count; ++i, word += words) {
      if (!dice_.chance(85)) continue;
      line("st.global" + std::string(info(kind).declare) + " [%own+" + std::to_string(4 * word) +
           "], " + info(kind).pool + std::to_string(i) + ";");
    }
  }
  for (unsigned i = 0; i < kPredicates; ++i, ++word) {
    line("selp.u32 %flag, 1, 2, %p" + std::to_string(i) + ";");
    line("st.global.u32 [%own+" + std::to_string(4 * word) + "], %flag;");
  }
  result_.output_words = (word + 1) / 2 * 2;
  line("ret;");
}

void Generator::assemble() {
  std::string text = ".version 8.0\n.target " + result_.target + "\n.address_size 64\n";
  text +=
      ".file 1 \"random.cu\"\n"
      ".func (.param .b32 result) helper(.param .b32 first, .param .b32 second)\n{\n"
      "  .reg .b32 %x, %y;\n  .reg .pred %less;\n"
      "  ld.param.u32 %x, [first];\n  ld.param.u32 %y, [second];\n"
      "  setp.lt.u32 %less, %x, %y;\n  @%less bra OUT;\n"
      "  mul.lo.u32 %x, %x, 3;\n  add.u32 %x, %x, %y;\n"
      "OUT:\n  add.u32 %x, %x, 7;\n  st.param.b32 [result], %x;\n  ret;\n}\n";
  text += ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 sum";
  for (std::size_t i = 0; i < result_.parameters.size(); ++i) {
    text += ", .param .u64 p" + std::to_string(i);
  }
  text += ")\n{\n  .shared .align 16 .b8 tile[" + std::to_string(result_.threads * 4) + "];\n";
  for (std::size_t k = 0; k < kKinds; ++k) {
    const KindInfo& row = info(static_cast<Kind>(k));
    text += std::string("  .reg ") + row.declare + " " + row.pool + "<" +
            std::to_string(row.count) + ">;\n";
    if (temps_[k] == 0) continue;
    text += std::string("  .reg ") + row.declare + " " + row.temp + "<" +
            std::to_string(temps_[k]) + ">;\n";
  }
  text += "  .reg .pred %p<" + std::to_string(kPredicates) + ">, %pt<" +
          std::to_string(predicate_temps_ + 1) + ">;\n";
  text += "  .reg .b32 %me, %gid, %far, %flag;\n  .reg .b64 %in, %out, %sum, %a, %own;\n";
  // The place of the thread's results is known only now.
  const std::string where = "  mul.wide.u32 %own, %gid, " +
                            std::to_string(result_.output_words * 4) +
                            ";\n  add.s64 %own, %out, %own;\n";
  const std::string after = "  mul.lo.u32 %far, %gid";
  body_.insert(body_.find(after), where);
  result_.ptx = std::move(text) + body_ + "}\n";
}

void Generator::block(Place place, std::uint32_t min, std::uint32_t max) {
  std::array<std::size_t, kKinds> sizes{};
  for (std::size_t k = 0; k < kKinds; ++k) sizes[k] = live_[k].size();
  const std::uint32_t count = dice_.between(min, max);
  for (std::uint32_t i = 0; i < count; ++i) statement(place);
  for (std::size_t k = 0; k < kKinds; ++k) live_[k].resize(sizes[k]);
}

void Generator::statement(Place place) {
  const bool loops = flavour_ == Flavour::Loops;
  const bool folds = flavour_ == Flavour::Constants || flavour_ == Flavour::Copies;
  const std::uint32_t kind = dice_.below(100);
  if (dice_.chance(3)) line(".loc 1 " + std::to_string(dice_.between(1, 99)) + " 1");
  if (!loops_.empty() && dice_.chance(loops ? 55 : 25)) return iv_condition(place);
  if (place.depth > 0) {
    if (kind < (loops ? 35u : 8u)) return loop(place);
    if (kind < (loops ? 40u : 16u)) return branch(place);
    if (kind < (folds ? 26u : loops ? 41u : 19u)) return decided_branch(place);
    if (kind < (folds ? 31u : loops ? 42u : 21u)) return unreachable(place);
    if (kind < (folds ? 33u : loops ? 43u : 23u)) return table(place);
    if (kind < (folds ? 35u : loops ? 44u : 25u)) return scope(place);
  }
  if (kind >= 98) return call();
  if (place.together && kind >= 90) return exchange();
  simple();
}

void Generator::branch(Place place) {
  --place.depth;
  place.together = false;
  const std::string otherwise = new_label(), end = new_label();
  const bool has_else = dice_.chance(50);
  line((dice_.chance(50) ? "@" : "@!") + predicate() + " bra " + otherwise + ";");
  block(place, 1, 3);
  if (has_else) line("bra " + end + ";");
  if (has_else && dice_.chance(20)) {
    // A branch to a branch.
    const std::string hop = new_label();
    Generator::place(otherwise);
    line("bra " + hop + ";");
    Generator::place(hop);
  } else {
    Generator::place(otherwise);
  }
  if (!has_else) return;
  block(place, dice_.chance(20) ? 0 : 1, 3);
  Generator::place(end);
}

// The branch goes the same way always; what is after it may stay unused.
void Generator::decided_branch(Place place) {
  --place.depth;
  const std::string skip = new_label(), p = new_predicate();
  std::string known = constant(Kind::R);
  if (dice_.chance(70)) {
    const std::string held = temp(Kind::R);
    line("mov.u32 " + held + ", " + known + ";");
    known = held;
  }
  line("setp." + compare_words() + " " + p + ", " + known + ", " + constant(Kind::R) + ";");
  line((dice_.chance(50) ? "@" : "@!") + p + " bra " + skip + ";");
  block(place, 1, 2);
  Generator::place(skip);
}

void Generator::unreachable(Place place) {
  --place.depth;
  const std::string end = new_label();
  line("bra " + end + ";");
  if (dice_.chance(40)) Generator::place(new_label());
  block(place, 1, 2);
  Generator::place(end);
}

void Generator::table(Place place) {
  --place.depth;
  place.together = false;
  const std::uint32_t count = dice_.between(2, 3);
  const std::string name = "T" + std::to_string(tables_++), end = new_label();
  std::vector<std::string> targets;
  std::string list;
  for (std::uint32_t i = 0; i < count; ++i) {
    targets.push_back(i != 0 && dice_.chance(15) ? targets.front() : new_label());
    list += (i == 0 ? "" : ", ") + targets.back();
  }
  const std::string index = temp(Kind::R);
  line("rem.u32 " + index + ", " + held(Kind::R) + ", " + std::to_string(count) + ";");
  body_ += name + ": .branchtargets " + list + ";\n";
  line("brx.idx " + index + ", " + name + ";");
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i != 0 && targets[i] == targets.front()) continue;
    Generator::place(targets[i]);
    block(place, 1, 2);
    line("bra " + end + ";");
  }
  Generator::place(end);
}

void Generator::scope(Place place) {
  --place.depth;
  const std::string hidden = "%r" + std::to_string(dice_.below(info(Kind::R).count));
  line("{");
  line(".reg .b32 " + hidden + ", %z<2>;");
  line("mov.u32 " + hidden + ", " + constant(Kind::R) + ";");
  line("mul.lo.u32 %z0, " + pool(Kind::R) + ", 3;");
  line("add.u32 %z1, %z0, " + pool(Kind::R) + ";");
  block(place, 0, 2);
  line("st.global.u32 [%own+" + std::to_string(4 * dice_.below(kOwnWords)) + "], %z1;");
  line("}");
}

void Generator::call() {
  line("{");
  line(".param .b32 a0;");
  line(".param .b32 a1;");
  line(".param .b32 back;");
  line("st.param.b32 [a0], " + held(Kind::R) + ";");
  line("st.param.b32 [a1], " + held(Kind::R) + ";");
  line("call (back), helper, (a0, a1);");
  line("ld.param.b32 " + pool(Kind::R) + ", [back];");
  line("}");
}

// Where all threads of the block come: words of others through shared memory, values of others.
void Generator::exchange() {
  const std::string threads = std::to_string(result_.threads);
  switch (dice_.below(whole_warps_ ? 6 : 3)) {
    case 0:
    case 1: {
      const std::string at = temp(Kind::R), base = temp(Kind::R), own = temp(Kind::R);
      line("mov.u32 " + base + ", tile;");
      line("mad.lo.u32 " + own + ", %me, 4, " + base + ";");
      line("bar.sync 0;");
      line("st.shared.u32 [" + own + "], " + held(Kind::R) + ";");
      line(dice_.chance(50) ? "bar.sync 0;" : "barrier.sync.aligned 0;");
      line("add.u32 " + at + ", %me, " + std::to_string(dice_.below(result_.threads)) + ";");
      line("rem.u32 " + at + ", " + at + ", " + threads + ";");
      line("mad.lo.u32 " + at + ", " + at + ", 4, " + base + ";");
      return line("ld.shared.u32 " + pool(Kind::R) + ", [" + at + "];");
    }
    case 2:
      if (whole_warps_ && dice_.chance(50)) return line("bar.sync 1, " + threads + ";");
      return line("bar.red.popc.u32 " + pool(Kind::R) + ", 0, " + predicate() + ";");
    case 3: {
      constexpr const char* kModes[] = {"bfly", "up", "down", "idx"};
      const std::string mode = dice_.pick(kModes);
      return line("shfl.sync." + mode + ".b32 " + pool(Kind::R) + ", " + held(Kind::R) + ", " +
                  std::to_string(dice_.below(32)) + ", " + (mode == "up" ? "0" : "31") + ", -1;");
    }
    case 4:
      return line("vote.sync.ballot.b32 " + pool(Kind::R) + ", " + predicate() + ", -1;");
    default:
      return line("redux.sync.add.u32 " + pool(Kind::R) + ", " + held(Kind::R) + ", -1;");
  }
}

// A start, bound or step: known to everybody, or `value` + (the thread's number & 3).
std::string Generator::loop_value(const LoopPlan& plan, std::uint64_t value, bool varies) {
  const Kind kind = plan.bits == 64 ? Kind::W : plan.bits == 32 ? Kind::R : Kind::S;
  if (!varies) return invariant(kind, value);
  const std::string low = temp(Kind::R), to = temp(kind);
  line("and.b32 " + low + ", %me, 3;");
  std::string wide = low;
  if (kind != Kind::R) {
    wide = temp(kind);
    line(std::string(kind == Kind::W ? "cvt.u64.u32 " : "cvt.u16.u32 ") + wide + ", " + low + ";");
  }
  line("add.u" + std::to_string(plan.bits) + " " + to + ", " + wide + ", " +
       parameter(kind, value) + ";");
  return to;
}

void Generator::step(const OpenLoop& loop, const std::string& by) {
  const std::string type = plan_type(loop.plan);
  std::string from = loop.iv;
  if (dice_.chance(10)) {
    from = temp(loop.plan.bits == 64 ? Kind::W : loop.plan.bits == 32 ? Kind::R : Kind::S);
    line("mov.b" + std::to_string(loop.plan.bits) + " " + from + ", " + loop.iv + ";");
  }
  line((loop.plan.subtracts ? "sub." : "add.") + type + " " + loop.iv + ", " + from + ", " + by +
       ";");
}

void Generator::loop(Place place) {
  --place.depth;
  OpenLoop open;
  const unsigned max = place.trips >= 16 ? 9 : place.trips >= 6 ? 4 : 2;
  const bool varies = dice_.chance(25);
  open.plan = plan_loop(dice_, max, varies);
  const LoopPlan& plan = open.plan;
  place.trips /= max;
  open.may_leave = dice_.chance(15);
  place.together &= !varies && !open.may_leave;

  const Kind kind = plan.bits == 64 ? Kind::W : plan.bits == 32 ? Kind::R : Kind::S;
  const std::string type = plan_type(plan), top = new_label(), p = new_predicate();
  open.leave = new_label();
  open.next = new_label();
  open.iv = temp(kind);
  const std::string bound = loop_value(plan, plan.bound, varies);
  const std::string by = dice_.chance(70) ? step_text(plan) : loop_value(plan, plan.step, false);
  const std::uint32_t candidates = dice_.between(1, 2);
  for (std::uint32_t i = 0; i < candidates; ++i) {
    const bool differs = dice_.chance(20);
    open.bounds.push_back({loop_value(plan, plan_point(dice_, plan), differs), !differs});
  }
  if (dice_.chance(20)) open.bounds.push_back({bound, !varies});
  line("mov.u" + std::to_string(plan.bits) + " " + open.iv + ", " +
       loop_value(plan, plan.start, false) + ";");
  const auto test = [&](bool stays, const std::string& to) {
    const bool inverted = dice_.chance(30);
    line("setp." + std::string(inverted ? inverse(plan.comparison) : to_text(plan.comparison)) +
         "." + type + " " + p + ", " + open.iv + ", " + bound + ";");
    line((inverted == stays ? "@!" : "@") + p + " bra " + to + ";");
  };
  if (plan.shape == LoopShape::Guarded) test(false, open.leave);
  Generator::place(top);
  if (plan.shape == LoopShape::Top) test(false, open.leave);
  loops_.push_back(open);
  block(place, 1, flavour_ == Flavour::Loops ? 3 : 2);
  loops_.pop_back();
  Generator::place(open.next);
  step(open, by);
  if (plan.shape == LoopShape::Top) {
    line("bra " + top + ";");
  } else {
    test(true, top);
  }
  Generator::place(open.leave);
}

// One statement after a guard, of a kind that a loop body has.
void Generator::guarded(const std::string& at) {
  switch (dice_.below(7)) {
    case 0:
      return line(at + "add.u32 " + pool(Kind::R) + ", " + held(Kind::R) + ", 1;");
    case 1:
      return line(at + "fma.rn.f32 " + pool(Kind::F) + ", " + held(Kind::F) + ", " + held(Kind::F) +
                  ", " + held(Kind::F) + ";");
    case 2:
      return line(at + "ld.global.u32 " + pool(Kind::R) + ", [%in+" +
                  std::to_string(4 * dice_.below(40)) + "];");
    case 3:
      return line(at + "st.global.u32 [%own+" + std::to_string(4 * dice_.below(kOwnWords)) + "], " +
                  held(Kind::R) + ";");
    case 4:
      return line(at + "mul.f32 " + pool(Kind::F) + ", " + held(Kind::F) + ", " + held(Kind::F) +
                  ";");
    case 5:
      return line(at + "xor.b32 " + pool(Kind::R) + ", " + held(Kind::R) + ", " + held(Kind::R) +
                  ";");
    default:
      return line(at + "mov.u32 " + pool(Kind::R) + ", " + source(Kind::R) + ";");
  }
}

// Something that depends on how an induction variable compares with an invariant.
void Generator::iv_condition(Place place) {
  const OpenLoop& open = dice_.chance(75) ? loops_.back() : dice_.pick(loops_);
  const OpenLoop::Bound& bound = dice_.pick(open.bounds);
  const LoopPlan& plan = open.plan;
  const bool own = keep_predicates_ || dice_.chance(80);
  const std::string p = own ? new_predicate() : predicate();
  std::string type = plan_type(plan);
  if (dice_.chance(15)) type[0] = type[0] == 's' ? 'u' : 's';
  constexpr Comparison kAll[] = {Comparison::lt, Comparison::le, Comparison::gt, Comparison::ge,
                                 Comparison::lt, Comparison::ge, Comparison::eq, Comparison::ne};
  const std::string comparison = to_text(dice_.pick(kAll));
  const bool swapped = bound.text[0] == '%' && dice_.chance(20);
  line("setp." + comparison + "." + type + " " + p + ", " + (swapped ? bound.text : open.iv) +
       ", " + (swapped ? open.iv : bound.text) + ";");
  const std::string at = (dice_.chance(60) ? "@" : "@!") + p + " ";
  const bool is_innermost = &open == &loops_.back();
  const std::uint32_t use = dice_.below(10);
  if (use < 4 && place.depth > 0) {
    --place.depth;
    place.together &= own && bound.uniform && place.together;
    const std::string otherwise = new_label(), end = new_label();
    const bool has_else = dice_.chance(40);
    line(at + "bra " + otherwise + ";");
    block(place, 1, 2);
    if (has_else) line("bra " + end + ";");
    Generator::place(otherwise);
    if (!has_else) return;
    block(place, 1, 2);
    return Generator::place(end);
  }
  if (use == 4) {
    return line("selp.b32 " + pool(Kind::R) + ", " + held(Kind::R) + ", " + source(Kind::R) + ", " +
                p + ";");
  }
  if (use == 5 && is_innermost && open.may_leave) {
    return line(at + "bra " + (dice_.chance(50) ? open.leave : open.next) + ";");
  }
  if (use == 6 && plan.bits == 32) {
    line("add.u32 " + pool(Kind::R) + ", " + held(Kind::R) + ", " + open.iv + ";");
  }
  const std::uint32_t count = dice_.between(1, 3);
  for (std::uint32_t i = 0; i < count; ++i) guarded(at);
}

/// A name of the generator and what it is called instead.
struct Renaming {
  std::string_view from, to;
};

// Prefixes and labels that begin, end or continue the names which passes make up:
// `%opt_<type>_<n>_` for registers and `$opt_<n>` for labels.
constexpr Renaming kPrefixesOfOurs[] = {{"%r", "%o"},    {"%f", "%opt"},    {"%ft", "%opt_f32_"},
                                        {"%d", "%opt_"}, {"%rt", "%opt_b"}, {"%p", "$opt_"},
                                        {"L", "$opt_1"}};
constexpr Renaming kOursThemselves[] = {
    {"%r", "%opt_b32_0_"},  {"%rt", "%opt_b32_1_"},   {"%f", "%opt_f32_0_"}, {"%w", "%opt_b64_"},
    {"%p", "%opt_pred_0_"}, {"%hh", "%opt_f16x2_0_"}, {"L", "$opt_"}};

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

// `%r3` and `%r<8>` are renamed with their numbers kept; other words stay.
std::string renamed(std::string_view ptx, std::span<const Renaming> renamings) {
  std::string result;
  for (std::size_t at = 0; at < ptx.size();) {
    std::size_t end = at;
    while (end < ptx.size() && is_name_character(ptx[end])) ++end;
    if (end == at) {
      result += ptx[at++];
      continue;
    }
    const std::string_view word = ptx.substr(at, end - at);
    const std::string_view stem = word.substr(0, word.find_last_not_of("0123456789") + 1);
    const auto found =
        std::find_if(renamings.begin(), renamings.end(),
                     [&](const Renaming& renaming) { return renaming.from == stem; });
    result += found == renamings.end() ? stem : found->to;
    result += word.substr(stem.size());
    at = end;
  }
  return result;
}

}  // namespace

RandomProgram random_program(std::uint64_t number, Flavour flavour) {
  RandomProgram result = Generator(number, flavour).run();
  if (number / 4 % 4 == 0) result.ptx = renamed(result.ptx, kPrefixesOfOurs);
  if (number / 4 % 4 == 1) result.ptx = renamed(result.ptx, kOursThemselves);
  return result;
}

}  // namespace ptxgen::test
