// src/cli/output/repro.cpp - what failed, recorded in a file
#include "cli/output/repro.hpp"

#include <iostream>

#include "cli_common/new_file.hpp"
#include "cli_common/program.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

void write_repro(const Settings& settings, const std::string& name,
                 const std::function<Recording()>& record_it) {
  if (settings.repro.empty()) return;
  try {
    NewFile file = NewFile::with_free_name(format_text("{}/{}.json", settings.repro, name));
    file.publish(to_json(record_it()));
    std::cerr << format_text("recorded: ptxgen replay {}\n", file.path());
  } catch (const Error& error) {
    std::cerr << format_text("not recorded (PTXGEN_REPRO={}): {}\n", settings.repro, error.what());
  } catch (const UsageError& error) {
    std::cerr << format_text("not recorded (PTXGEN_REPRO={}): {}\n", settings.repro, error.what());
  }
}

}  // namespace ptxgen::cli
