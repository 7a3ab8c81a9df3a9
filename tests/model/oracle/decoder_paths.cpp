// tests/model/oracle/decoder_paths.cpp - logits of one prompt by every way through a session
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <ptxgen/model.hpp>
#include <ptxgen/runtime.hpp>
#include <string>
#include <vector>

#include "ptxgen/runtime/device/findings.hpp"

using namespace ptxgen;
using model::Model;
using model::Session;
using model::SessionOptions;

namespace {

constexpr const char* kUsage =
    "usage: decoder_paths MODEL.gguf TOKENS CACHE FOLDER [PATH...]\n"
    "Runs the tokens (numbers with commas) on the emulated device by each path and writes their\n"
    "logits, f32 [tokens][vocabulary], into FOLDER/PATH.f32. CACHE: f32, f16, bf16 or q8_0.\n"
    "Paths: at-once pieces tokens launches restored truncated sequences. Exit status 1: a "
    "finding,\n"
    "2: an error.\n";

using Tokens = std::vector<std::uint32_t>;
using Logits = std::vector<float>;

struct Run {
  const Model& model;
  Tokens tokens;
  ElementType cache;

  [[nodiscard]] SessionOptions options() const {
    SessionOptions options;
    options.cache = cache;
    return options;
  }
  [[nodiscard]] std::span<const std::uint32_t> part(std::size_t begin, std::size_t end) const {
    return std::span(tokens).subspan(begin, end - begin);
  }
};

void append(Logits& logits, std::span<const float> more) {
  logits.insert(logits.end(), more.begin(), more.end());
}

void decode(Session& session, const Run& run, std::size_t begin, Logits& logits) {
  for (std::size_t i = begin; i < run.tokens.size(); ++i) {
    session.decode(run.tokens[i]);
    append(logits, session.logits());
  }
}

// The prompt in one call.
Logits at_once(const Run& run) {
  Session session(run.model, run.options());
  return session.prefill_all(run.tokens);
}

// In calls of 1, 2, 3, ... tokens, which the session computes by at most 5 at once.
Logits pieces(const Run& run) {
  SessionOptions options = run.options();
  options.prefill_rows = 5;
  Session session(run.model, options);
  Logits logits;
  std::size_t begin = 0;
  for (std::size_t size = 1; begin < run.tokens.size(); ++size) {
    const std::size_t end = std::min(begin + size, run.tokens.size());
    append(logits, session.prefill_all(run.part(begin, end)));
    begin = end;
  }
  return logits;
}

// Token by token: a captured graph.
Logits tokens(const Run& run) {
  Session session(run.model, run.options());
  Logits logits;
  decode(session, run, 0, logits);
  return logits;
}

// Token by token, kernel by kernel.
Logits launches(const Run& run) {
  SessionOptions options = run.options();
  options.graph = false;
  Session session(run.model, options);
  Logits logits;
  decode(session, run, 0, logits);
  return logits;
}

// The first half in a session that is saved, the rest in another one.
Logits restored(const Run& run) {
  const std::size_t half = run.tokens.size() / 2;
  Logits logits;
  std::vector<std::byte> saved;
  {
    Session first(run.model, run.options());
    logits = first.prefill_all(run.part(0, half));
    saved = first.save();
  }
  Session second(run.model, run.options());
  second.restore(saved);
  decode(second, run, half, logits);
  return logits;
}

// The second half after other tokens, which were forgotten.
Logits truncated(const Run& run) {
  const std::size_t half = run.tokens.size() / 2;
  Session session(run.model, run.options());
  Logits logits = session.prefill_all(run.part(0, half));
  session.prefill(run.part(0, half));
  session.decode(run.tokens[0]);
  session.truncate(static_cast<std::uint32_t>(half));
  decode(session, run, half, logits);
  return logits;
}

// In the middle of three sequences, the others with other tokens and of other lengths.
Logits sequences(const Run& run) {
  const std::size_t half = run.tokens.size() / 2;
  SessionOptions options = run.options();
  options.sequences = 3;
  Session session(run.model, options);
  session.prefill(run.part(half, run.tokens.size()), 0);
  Logits logits = session.prefill_all(run.part(0, half), 1);
  session.prefill(run.part(3, 4), 2);
  for (std::size_t i = half; i < run.tokens.size(); ++i) {
    const std::uint32_t next[] = {run.tokens[i - half], run.tokens[i], run.tokens[0]};
    session.decode(next);
    append(logits, session.logits(1));
  }
  return logits;
}

struct Path {
  std::string_view name;
  Logits (*run)(const Run& run);
};
constexpr Path kPaths[] = {{"at-once", at_once},    {"pieces", pieces},
                           {"tokens", tokens},      {"launches", launches},
                           {"restored", restored},  {"truncated", truncated},
                           {"sequences", sequences}};

Tokens parse_tokens(const char* text) {
  Tokens parsed;
  for (char* end = nullptr; *text != '\0'; text = *end == ',' ? end + 1 : end) {
    parsed.push_back(static_cast<std::uint32_t>(std::strtoul(text, &end, 10)));
    if (end == text) return {};
  }
  return parsed;
}

std::optional<ElementType> parse_cache(std::string_view name) {
  for (const ElementType type :
       {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::q8_0}) {
    if (name == to_string(type)) return type;
  }
  return {};
}

bool wanted(std::string_view name, int argc, char** argv) {
  bool found = argc == 5;
  for (int i = 5; i < argc; ++i) found = found || name == argv[i];
  return found;
}

int run_paths(int argc, char** argv, const Tokens& prompt, ElementType cache) {
  const Device device = Device::open("emulator");
  const Context context(device);
  const Model model(context, argv[1]);
  const Run run{model, prompt, cache};
  int paths = 0;
  for (const Path& path : kPaths) {
    if (!wanted(path.name, argc, argv)) continue;
    const Logits logits = path.run(run);
    std::ofstream file(std::string(argv[4]) + "/" + std::string(path.name) + ".f32",
                       std::ios::binary);
    file.write(reinterpret_cast<const char*>(logits.data()),
               static_cast<std::streamsize>(logits.size() * sizeof(float)));
    if (!file.flush()) {
      std::cerr << "decoder_paths: cannot write into " << argv[4] << "\n";
      return 2;
    }
    ++paths;
  }
  const std::uint64_t findings = device.finding_counts().all();
  std::printf("%d paths, %llu findings\n", paths, static_cast<unsigned long long>(findings));
  return findings == 0 && paths > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const Tokens prompt = argc < 5 ? Tokens{} : parse_tokens(argv[2]);
  const std::optional<ElementType> cache = argc < 5 ? std::nullopt : parse_cache(argv[3]);
  if (prompt.empty() || !cache) {
    std::cerr << kUsage;
    return 2;
  }
  return run_paths(argc, argv, prompt, *cache);
} catch (const std::exception& error) {
  std::cerr << "decoder_paths: " << error.what() << "\n";
  return 2;
}
