// src/cli/commands/diff.cpp - ptxgen diff: what two PTX files do differently
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "ptxgen/analysis/diff.hpp"
#include "ptxgen/ptx/parser.hpp"

namespace ptxgen::cli {

namespace {

struct DiffArguments {
  std::string a, b, output;
  bool json = false;
};

nlohmann::json json_of(const std::vector<analysis::Change>& changes) {
  nlohmann::json list = nlohmann::json::array();
  for (const analysis::Change& change : changes) {
    list.push_back({{"kind", analysis::name(change.kind)},
                    {"kernel", change.kernel},
                    {"a", change.a},
                    {"b", change.b},
                    {"lines", {change.line_a, change.line_b}},
                    {"what", change.what}});
  }
  return {{"equal", changes.empty()}, {"changes", std::move(list)}};
}

std::string text_of_changes(const std::vector<analysis::Change>& changes) {
  if (changes.empty()) return "no difference in what they do\n";
  std::string text;
  for (const analysis::Change& change : changes) text += analysis::to_text(change) + '\n';
  return text;
}

}  // namespace

void add_diff(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DiffArguments>();
  Command command(app, "diff",
                  "What two PTX files do differently; names of registers and the order of "
                  "independent statements do not count");
  command.footer("Example: ptxgen diff before.ptx after.ptx");
  command.add_option("a", options->a, "PTX file, - for standard input").required();
  command.add_option("b", options->b, "the PTX file it is compared with").required();
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json,
                   "one JSON document: {\"equal\",\"changes\":[{\"kind\",\"kernel\",\"a\",\"b\","
                   "\"lines\",\"what\"}]}");
  command.callback([options, &exit_code] {
    const ptx::Module a = ptx::parse(read_input(options->a), input_name(options->a));
    const ptx::Module b = ptx::parse(read_input(options->b), input_name(options->b));
    const std::vector<analysis::Change> changes = analysis::diff(a, b);
    write_output(options->output,
                 options->json ? text_of(json_of(changes)) : text_of_changes(changes));
    exit_code = changes.empty() ? kDone : kFound;
  });
}

}  // namespace ptxgen::cli
