// src/cli/commands/fmt.cpp - ptxgen fmt: parse and print
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::cli {

void add_fmt(CLI::App& app, int& exit_code) {
  struct Options {
    std::string file;
    std::string output;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Command command(app, "fmt", "Parse any PTX and print it in the library's form");
  command.footer("Example: ptxgen fmt kernel.ptx -o tidy.ptx");
  command.add_option("file", options->file, "PTX file, - for standard input").required();
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json, "one JSON document: {\"ptx\"}");
  command.callback([options, &exit_code] {
    const ptx::Module module = ptx::parse(read_input(options->file), input_name(options->file));
    const std::string text = ptx::print(module);
    if (options->json) {
      if (!options->output.empty()) write_output(options->output, text);
      write_output({}, text_of({{"ptx", text}}));
    } else {
      write_output(options->output, text);
    }
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
