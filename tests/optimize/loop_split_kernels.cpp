// tests/optimize/loop_split_kernels.cpp - generated loops of every form
#include "loop_split_kernels.hpp"

#include <cstring>
#include <stdexcept>

#include "ptxgen/emulator.hpp"

namespace ptxgen::test {

namespace {

std::uint64_t sign(const SplitShape& s) { return std::uint64_t{1} << (s.bits - 1); }

// The offset in the direction in which the loop runs.
std::int64_t ahead(const SplitShape& s) { return s.down ? -s.offset : s.offset; }

std::string literal(const SplitShape& s, std::uint64_t value) {
  value &= mask(s);
  return std::to_string(static_cast<std::int64_t>((value ^ sign(s)) - sign(s)));
}

class Writer {
 public:
  explicit Writer(const SplitShape& shape) : s_(shape) {}

  std::string text() {
    const std::string b = std::to_string(s_.bits);
    out_ =
        ".version 8.4\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 cases, .param .u64 out)\n{\n.reg .pred %p<12>;\n"
        ".reg .b64 %a<4>;\n.reg .b64 %hash, %count, %part;\n.reg .b32 %c;\n.reg .b" +
        b + " %iv, %lb, %ub, %s, %st, %x<8>;\n";
    line("mov.u32 %c, %ctaid.x");
    line("ld.param.u64 %a0, [cases]");
    line("mad.wide.u32 %a0, %c, 32, %a0");
    const char* names[] = {"%lb", "%ub", "%s", "%st"};
    for (int i = 0; i < 4; ++i) {
      line("ld.global.b" + b + " " + names[i] + ", [%a0+" + std::to_string(8 * i) + "]");
    }
    clamp();
    line("mov.b64 %hash, 17");
    line("mov.b64 %count, 0");
    line("mov.b" + b + " %iv, %lb");
    loop();
    line("ld.param.u64 %a1, [out]");
    line("mad.wide.u32 %a1, %c, 16, %a1");
    line("st.global.u64 [%a1], %hash");
    line("st.global.u64 [%a1+8], %count");
    line("ret");
    out_ += "}\n";
    return out_;
  }

 private:
  void line(const std::string& text) { out_ += text + ";\n"; }
  std::string type() const { return (s_.is_signed ? ".s" : ".u") + std::to_string(s_.bits); }
  std::string below() const { return s_.down ? "gt" : "lt"; }
  std::string not_below() const { return s_.down ? "le" : "ge"; }

  // Numbers that keep the step from passing the end of the type, where the form needs it.
  void clamp() {
    const std::uint64_t max = s_.is_signed ? mask(s_) >> 1 : mask(s_);
    const std::uint64_t min = s_.is_signed ? sign(s_) : 0;
    const std::uint64_t space =
        s_.step + static_cast<std::uint64_t>(s_.offset < 0 ? -s_.offset : s_.offset);
    const std::string op = (s_.down ? "max" : "min") + type();
    const std::string end = literal(s_, s_.down ? min + space : max - space);
    const bool wide = s_.step != 1 || s_.offset != 0;
    if (s_.clamped && s_.form != SplitForm::Limit && (wide || s_.form == SplitForm::AtMost)) {
      line(op + " %ub, %ub, " + end);
    }
    if (s_.form == SplitForm::Bottom || s_.offset != 0) line(op + " %lb, %lb, " + end);
    if (ahead(s_) < 0) {
      const std::string back = (s_.down ? "min" : "max") + type();
      line(back + " %lb, %lb, " + literal(s_, s_.down ? max - space : min + space));
    }
  }

  std::string step_text() const {
    const std::uint64_t value = s_.down ? 0 - s_.step : s_.step;
    return "add.s" + std::to_string(s_.bits) + " %iv, %iv, " +
           (s_.constant_step ? literal(s_, value) : "%st");
  }

  void loop() {
    const std::string t = type();
    switch (s_.form) {
      case SplitForm::Guarded:
      case SplitForm::NotEqual:
      case SplitForm::AtMost: {
        const bool at_most = s_.form == SplitForm::AtMost;
        line("setp." + (at_most ? (s_.down ? std::string("lt") : "gt") : not_below()) + t +
             " %p1, %iv, %ub");
        line("@%p1 bra END");
        out_ += "TOP:\n";
        body();
        line(step_text());
        const std::string word = s_.form == SplitForm::NotEqual ? "ne"
                                 : at_most                      ? (s_.down ? "ge" : "le")
                                                                : below();
        line("setp." + word + t + " %p2, %iv, %ub");
        line("@%p2 bra TOP");
        break;
      }
      case SplitForm::Bottom:
        out_ += "TOP:\n";
        body();
        line(step_text());
        line("setp." + below() + t + " %p2, %iv, %ub");
        line("@%p2 bra TOP");
        break;
      case SplitForm::Before:
        out_ += "TOP:\n";
        body();
        line("setp." + below() + t + " %p2, %iv, %ub");
        line(step_text());
        line("@%p2 bra TOP");
        break;
      case SplitForm::Top: {
        const std::string b = std::to_string(s_.bits);
        line("mov.b" + b + " %x5, %iv");
        line("bra.uni HEAD");
        out_ += "HEAD:\n";
        line("add.s64 %count, %count, 65536");  // the header does something too
        line("mov.b" + b + " %iv, %x5");
        line("setp." + below() + t + " %p1, %iv, %ub");
        line("not.pred %p2, %p1");
        line("@%p2 bra END");
        line("bra.uni BODY");
        out_ += "BODY:\n";
        body();
        line(step_text());
        line("mov.b" + b + " %x5, %iv");
        line("bra.uni HEAD");
        break;
      }
      case SplitForm::Limit: {
        const std::string u = ".u" + std::to_string(s_.bits);
        line("setp.ge" + t + " %p1, %lb, %ub");
        line("@%p1 bra END");
        line("sub" + t + " %x1, %ub, %lb");
        line("min" + u + " %x2, %x1, " + (s_.constant_step ? literal(s_, s_.step) : "%st"));
        line("sub" + u + " %x3, %x1, %x2");
        line("add" + t + " %x4, %lb, %x3");
        out_ += "TOP:\n";
        body();
        line("setp.lt" + t + " %p2, %iv, %x4");
        line(step_text());
        line("@%p2 bra TOP");
        break;
      }
    }
    out_ += "END:\n";
  }

  void body() {
    constexpr const char* kWords[] = {"lt", "le", "gt", "ge"};
    constexpr const char* kMirrored[] = {"gt", "ge", "lt", "le"};
    line("mul.lo.u64 %hash, %hash, 1000003");
    if (s_.bits == 64) {
      line("xor.b64 %hash, %hash, %iv");
    } else {
      line("cvt.u64.u32 %part, %iv");
      line("xor.b64 %hash, %hash, %part");
    }
    std::string value = "%iv";
    if (s_.offset != 0) {
      value = "%x7";
      line("add.s" + std::to_string(s_.bits) + " %x7, %iv, " + std::to_string(s_.offset));
    }
    const std::string operands = s_.swapped ? "%s, " + value : value + ", %s";
    line("setp." + std::string(s_.swapped ? kMirrored[s_.relation] : kWords[s_.relation]) + type() +
         " %p5, " + operands);
    if (s_.predicated) {
      line("@%p5 add.s64 %count, %count, 1");
      line("@!%p5 add.s64 %hash, %hash, 99");
      line("selp.b64 %part, 5, 7, %p5");
      line("xor.b64 %hash, %hash, %part");
      return;
    }
    line("@!%p5 bra OTHER");
    line("add.s64 %count, %count, 1");
    line("xor.b64 %hash, %hash, 21845");
    line("bra JOIN");
    out_ += "OTHER:\n";
    line("add.s64 %hash, %hash, 99");
    out_ += "JOIN:\n";
  }

  const SplitShape& s_;
  std::string out_;
};

}  // namespace

std::string text_of(const SplitShape& shape) { return Writer(shape).text(); }

int iterations_of(const SplitShape& s, const SplitCase& c, int max) {
  const std::uint64_t flip = s.is_signed ? sign(s) : 0;
  const auto order = [&](std::uint64_t v) { return (v ^ flip) & mask(s); };
  const std::uint64_t high = s.is_signed ? mask(s) >> 1 : mask(s);
  const std::uint64_t low = s.is_signed ? sign(s) : 0;
  const std::uint64_t size = s.constant_step ? s.step : c.step;
  const std::uint64_t step = s.down ? 0 - size : size;
  const std::uint64_t space =
      s.step + static_cast<std::uint64_t>(s.offset < 0 ? -s.offset : s.offset);
  std::uint64_t iv = c.lb & mask(s), end = c.ub & mask(s);
  const auto clamp = [&](std::uint64_t v) {
    const std::uint64_t to = s.down ? low + space : high - space;
    return s.down ? (order(v) < order(to) ? to : v) : (order(v) > order(to) ? to : v);
  };
  const bool wide = s.step != 1 || s.offset != 0;
  if (s.clamped && s.form != SplitForm::Limit && (wide || s.form == SplitForm::AtMost)) {
    end = clamp(end);
  }
  if (s.form == SplitForm::Bottom || s.offset != 0) iv = clamp(iv);
  if (ahead(s) < 0) {
    const std::uint64_t to = s.down ? high - space : low + space;
    if (s.down ? order(iv) > order(to) : order(iv) < order(to)) iv = to;
  }
  iv &= mask(s);
  end &= mask(s);
  const auto below = [&](std::uint64_t v, std::uint64_t e) {
    return s.down ? order(v) > order(e) : order(v) < order(e);
  };
  const bool guarded = s.form != SplitForm::Bottom && s.form != SplitForm::Before;
  const bool at_most = s.form == SplitForm::AtMost;
  if (guarded && !(below(iv, end) || (at_most && iv == end))) return 0;
  if (s.form == SplitForm::Limit) {
    const std::uint64_t length = (end - iv) & mask(s);
    end = (iv + (length - (length < (size & mask(s)) ? length : size & mask(s)))) & mask(s);
  }
  for (int iterations = 1; iterations <= max; ++iterations) {
    const std::uint64_t next = (iv + step) & mask(s);
    const bool old = s.form == SplitForm::Before || s.form == SplitForm::Limit;
    const std::uint64_t tested = old ? iv : next;
    const bool more = s.form == SplitForm::NotEqual
                          ? tested != end
                          : below(tested, end) || (at_most && tested == end);
    if (!more) return iterations;
    iv = next;
  }
  return max + 1;
}

namespace {

emulator::Result launch(const ptx::Module& module, const std::vector<SplitCase>& cases,
                        std::vector<std::uint64_t>& results) {
  emulator::Device device(emulator::default_gpu("sm_90"));
  emulator::Program program = emulator::Program::load(device, module);
  const std::uint64_t in = device.allocate(cases.size() * sizeof(SplitCase));
  const std::uint64_t out = device.allocate(cases.size() * 16);
  device.write(in, std::as_bytes(std::span(cases)));
  std::byte parameters[16];
  std::memcpy(parameters, &in, 8);
  std::memcpy(parameters + 8, &out, 8);
  emulator::Launch launch;
  launch.kernel = "k";
  launch.grid = {static_cast<std::uint32_t>(cases.size()), 1, 1};
  launch.parameters = parameters;
  emulator::Options options;
  options.max_instructions = 100000;
  emulator::Result result = emulator::run(program, launch, options);
  if (result.status != emulator::Status::Ok) {
    throw std::runtime_error(result.findings.empty() ? "the loop does not end"
                                                     : to_text(result.findings[0]));
  }
  results.resize(cases.size() * 2);
  device.read(out, std::as_writable_bytes(std::span(results)));
  return result;
}

}  // namespace

std::vector<std::uint64_t> run_cases(const ptx::Module& module,
                                     const std::vector<SplitCase>& cases) {
  std::vector<std::uint64_t> results;
  static_cast<void>(launch(module, cases, results));
  return results;
}

std::uint64_t instructions(const ptx::Module& module, const std::vector<SplitCase>& cases) {
  std::vector<std::uint64_t> results;
  return launch(module, cases, results).counters.warp_instructions;
}

}  // namespace ptxgen::test
