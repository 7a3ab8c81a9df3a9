// tests/cli/model_file.hpp - the alphabet model, and calls of ptxgen with it
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/program.hpp"
#include "model/alphabet_model.hpp"
#include "model/gguf_writer.hpp"

namespace ptxgen::test {

/// What a writer has written, in a folder that goes with it.
struct GgufFile {
  TemporaryDirectory folder;
  std::string path = folder.file("model.gguf");
  explicit GgufFile(const GgufWriter& writer) { write_file(path, writer.bytes()); }
};

/// The alphabet model, in a folder that goes with it.
struct ModelFile {
  TemporaryDirectory folder;
  std::string path = folder.file("alphabet.gguf");

  explicit ModelFile(AlphabetOptions options = {}) {
    write_file(path, AlphabetModel(std::move(options)).bytes());
  }
  /// `ptxgen COMMAND FILE OPTIONS`
  [[nodiscard]] SubprocessResult run(const std::string& command,
                                     std::vector<std::string> options) const {
    options.insert(options.begin(), {command, path});
    return ptxgen_program(std::move(options));
  }
  /// The same with --json; requires success.
  [[nodiscard]] nlohmann::json run_json(const std::string& command,
                                        std::vector<std::string> options) const {
    options.emplace_back("--json");
    const SubprocessResult result = run(command, std::move(options));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(!contains(result.err, "tokens/s"));  // progress only, if that took long
    return nlohmann::json::parse(result.out);
  }
};

/// The floats of an array's data.
inline std::vector<float> floats_in(const std::string& data) {
  std::vector<float> values(data.size() / sizeof(float));
  std::memcpy(values.data(), data.data(), data.size());
  return values;
}

}  // namespace ptxgen::test
