// src/ptx/parser_module.cpp - module-level directives
#include <algorithm>
#include <limits>

#include "ptx/parser_state.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::ptx::reading {

namespace {

constexpr std::uint64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMax64 = std::numeric_limits<std::uint64_t>::max();

Linkage linkage_from_keyword(std::string_view keyword) {
  if (keyword == "visible") return Linkage::Visible;
  if (keyword == "extern") return Linkage::Extern;
  if (keyword == "weak") return Linkage::Weak;
  if (keyword == "common") return Linkage::Common;
  return Linkage::None;
}

}  // namespace

void Parser::read_module() {
  read_version();
  read_target();
  for (;;) {
    cursor_.skip();
    if (cursor_.at_end()) return;
    if (cursor_.at[0] == '@' && cursor_.at[1] == '@') {  // `@@DWARF ...`, one line each
      const char* start = cursor_.at;
      while (!cursor_.at_end() && *cursor_.at != '\n' && *cursor_.at != '\r') ++cursor_.at;
      module_.items.push_back({Item::Kind::Section, 0, intern({start, cursor_.at}), {}});
      continue;
    }
    const std::string_view keyword = cursor_.peek_keyword();
    if (keyword.empty() || !read_module_directive(keyword)) {
      cursor_.fail_expected("a directive, a variable or a function");
    }
  }
}

void Parser::read_version() {
  if (!cursor_.accept_keyword("version"))
    cursor_.fail_expected("'.version' at the start of the text");
  const auto part = [&] {
    unsigned value = 0;
    const char* start = cursor_.at;
    if (!is(*cursor_.at, kDigit)) cursor_.fail_expected("a version such as 7.8");
    while (is(*cursor_.at, kDigit) && value < 256)
      value = value * 10 + static_cast<unsigned>(*cursor_.at++ - '0');
    if (value > 255)
      cursor_.fail(start, "expected a version such as 7.8, found " + cursor_.describe(start));
    return static_cast<std::uint8_t>(value);
  };
  cursor_.skip();
  module_.version_line = cursor_.line;
  module_.version.major = part();
  if (*cursor_.at != '.') cursor_.fail_expected("'.' in the version");
  ++cursor_.at;
  module_.version.minor = part();
  if (is(*cursor_.at, kNamePart)) cursor_.fail_expected("the end of the version");
}

void Parser::read_target() {
  if (!cursor_.accept_keyword("target")) cursor_.fail_expected("'.target' after '.version'");
  module_.target = cursor_.name("a target such as sm_89");
  module_.target_line = cursor_.line;
  module_.target_options.clear();
  while (cursor_.accept(',')) {
    module_.target_options.emplace_back(cursor_.name("a target option such as debug"));
  }
}

void Parser::read_address_size() {
  cursor_.skip();
  const char* place = cursor_.at;
  const Constant value = read_literal(cursor_, "32 or 64 after '.address_size'");
  if (!value.integer() || (value.bits != 32 && value.bits != 64)) {
    cursor_.fail(place,
                 "expected 32 or 64 after '.address_size', found " + cursor_.describe(place));
  }
  module_.address_size = static_cast<std::uint8_t>(value.bits);
}

// False, and nothing read, if no directive has that name.
bool Parser::read_module_directive(std::string_view keyword) {
  if (linkage_from_keyword(keyword) != Linkage::None) {
    read_linked(keyword);
  } else if (keyword == "func" || keyword == "entry") {
    cursor_.take_keyword(keyword);
    read_function(Linkage::None, keyword == "entry");
  } else if (const Space space = space_from_keyword(keyword);
             space != Space::Generic && space != Space::Register && space != Space::Param) {
    read_linked({});
  } else if (keyword == "file") {
    cursor_.take_keyword(keyword);
    read_file_directive();
  } else if (keyword == "section") {
    read_section();
  } else if (keyword == "pragma") {
    cursor_.take_keyword(keyword);
    read_module_pragma();
  } else if (keyword == "alias") {
    cursor_.take_keyword(keyword);
    read_alias();
  } else if (keyword == "address_size") {
    cursor_.take_keyword(keyword);
    read_address_size();
  } else {
    return false;
  }
  return true;
}

// A variable or function, after `.visible` and the like if there is one.
void Parser::read_linked(std::string_view keyword) {
  Linkage linkage = Linkage::None;
  if (!keyword.empty()) {
    linkage = linkage_from_keyword(keyword);
    cursor_.take_keyword(keyword);
  }
  const std::string_view next = cursor_.peek_keyword();
  if (next == "func" || next == "entry") {
    cursor_.take_keyword(next);
    read_function(linkage, next == "entry");
    return;
  }
  const Space space = space_from_keyword(next);
  if (space == Space::Generic || space == Space::Register || space == Space::Param) {
    cursor_.fail_expected("'.func', '.entry' or a state space after '." + std::string(keyword) +
                          "'");
  }
  const Variable type = read_variable_type("at module level");
  do {
    Variable variable = type;
    variable.linkage = linkage;
    read_declarator(variable, true);
    if (cursor_.accept('=')) read_initialiser(variable);
    declare_module_variable(variable);
  } while (cursor_.accept(','));
  cursor_.expect(';', "after the declaration of '" +
                          std::string(module_.text(module_.variables.back().name)) + "'");
}

void Parser::declare_module_variable(const Variable& variable) {
  const auto index = static_cast<std::uint32_t>(module_.variables.size());
  module_.variables.push_back(variable);
  module_.items.push_back({Item::Kind::Variable, index, {}, {}});
  // The text of a name in the table must stay; that of the module's names may move.
  const std::uint32_t name = names_.find_or_add(declared_name_);
  if (variable.range != 0) {
    names_[name].ranged = static_cast<std::uint32_t>(ranged_.size());
    ranged_.push_back({kNone, index, variable.range});
    return;
  }
  const std::uint32_t known = names_[name].global;
  if (known == kNone) {
    names_[name].global = add_symbol(name, SymbolKind::Variable, kNone, index);
    return;
  }
  Symbol& symbol = module_.symbols[known];
  const bool replaces = symbol.kind == SymbolKind::Unresolved ||
                        (symbol.kind == SymbolKind::Variable &&
                         module_.variables[symbol.index].linkage == Linkage::Extern);
  if (replaces) symbol = {symbol.name, SymbolKind::Variable, kNone, index};
}

void Parser::read_file_directive() {
  SourceFile file;
  file.number = static_cast<std::uint32_t>(read_number(cursor_, "a number after '.file'", kMax32));
  file.path = intern(cursor_.string());
  if (cursor_.accept(',')) {
    file.has_time = true;
    file.timestamp = read_number(cursor_, "a time stamp", kMax64);
    cursor_.expect(',', "after the time stamp");
    file.size = read_number(cursor_, "a file size", kMax64);
  }
  module_.items.push_back(
      {Item::Kind::File, static_cast<std::uint32_t>(module_.files.size()), {}, {}});
  module_.files.push_back(file);
}

// Kept as it is: `.section NAME { ... }`, or the lines after it if there is no brace.
void Parser::read_section() {
  const char* start = cursor_.at;
  cursor_.take_keyword("section");
  const std::string_view keyword = cursor_.peek_keyword();
  if (keyword.empty()) {
    (void)cursor_.name("the name of a section");
  } else {
    cursor_.take_keyword(keyword);
  }
  const Cursor::Mark name_end = cursor_.mark();
  if (cursor_.accept('{')) {
    for (std::size_t depth = 1; depth > 0;) {
      cursor_.skip();
      if (cursor_.at_end()) cursor_.fail_expected("'}' at the end of the section");
      if (*cursor_.at == '"') {
        (void)cursor_.string();
        continue;
      }
      if (*cursor_.at == '{') ++depth;
      if (*cursor_.at == '}') --depth;
      if (static_cast<unsigned char>(*cursor_.at) < ' ')
        cursor_.fail_expected("data in the section");
      ++cursor_.at;
    }
  } else {
    cursor_.rewind(name_end);
    skip_section_lines();
  }
  module_.items.push_back({Item::Kind::Section, 0, intern({start, cursor_.at}), {}});
}

// Labels and lines of data; leaves the cursor after the last of them.
void Parser::skip_section_lines() {
  Cursor::Mark last = cursor_.mark();
  for (;;) {
    cursor_.skip();
    const std::string_view keyword = cursor_.peek_keyword();
    if (keyword == "b8" || keyword == "b16" || keyword == "b32" || keyword == "b64") {
      cursor_.take_keyword(keyword);
      for (;;) {
        cursor_.skip();
        while (is(*cursor_.at, kNamePart | kNameStart) || *cursor_.at == '-' || *cursor_.at == '+')
          ++cursor_.at;
        last = cursor_.mark();
        cursor_.skip();
        const char c = *cursor_.at;
        if (c != ',' && c != '+' && c != '-') break;
        ++cursor_.at;
      }
    } else if (is(*cursor_.at, kNameStart)) {
      (void)cursor_.name("a label");
      cursor_.expect(':', "after a label of the section");
      last = cursor_.mark();
    } else {
      break;
    }
  }
  cursor_.rewind(last);
}

void Parser::read_module_pragma() {
  do {
    module_.items.push_back({Item::Kind::Pragma, 0, intern(cursor_.string()), {}});
  } while (cursor_.accept(','));
  cursor_.expect(';', "after '.pragma'");
}

void Parser::read_alias() {
  Item item{Item::Kind::Alias, 0, {}, {}};
  item.text = intern(cursor_.name("the name of a function after '.alias'"));
  cursor_.expect(',', "between the names of '.alias'");
  item.text2 = intern(cursor_.name("the name of the function that '.alias' names again"));
  cursor_.expect(';', "after '.alias'");
  module_.items.push_back(item);
}

void Parser::read_function(Linkage linkage, bool entry) {
  const auto index = static_cast<std::uint32_t>(module_.functions.size());
  Function& function = module_.functions.emplace_back();
  module_.items.push_back({Item::Kind::Function, index, {}, {}});
  function.entry = entry;
  function.linkage = linkage;
  function.line = cursor_.line;
  begin_function(index);
  if (!entry && cursor_.accept('(')) read_parameters(function.returns, SymbolKind::Return);
  const std::string_view text =
      cursor_.name(entry ? "the name of the entry" : "the name of the function");
  const std::uint32_t name = names_.find_or_add(text);
  cursor_.kernel = text;
  function.name = id_of(name);
  declare_function(name, index);
  if (cursor_.accept('(')) read_parameters(function.parameters, SymbolKind::Parameter);
  read_function_directives(function);
  if (cursor_.accept(';')) {
    function.declaration = true;
  } else if (cursor_.accept('{')) {
    Symbol& symbol = module_.symbols[names_[name].global];
    if (symbol.kind == SymbolKind::Function && module_.functions[symbol.index].declaration) {
      symbol.index = index;
    }
    read_body();
  } else if (!entry && ends_declaration()) {
    function.declaration = true;
  } else {
    cursor_.fail_expected("'{' or ';' after the head of '" + std::string(text) + "'");
  }
  end_function();
  cursor_.kernel.clear();
}

// The `;` after the declaration of a .func may be missing if a new directive follows.
bool Parser::ends_declaration() {
  const std::string_view keyword = cursor_.peek_keyword();
  if (keyword.empty()) return cursor_.at_end();
  return linkage_from_keyword(keyword) != Linkage::None || keyword == "func" ||
         keyword == "entry" || keyword == "file" || keyword == "section" || keyword == "alias" ||
         space_from_keyword(keyword) != Space::Generic;
}

void Parser::declare_function(std::uint32_t name, std::uint32_t index) {
  const std::uint32_t known = names_[name].global;
  if (known == kNone) {
    names_[name].global = add_symbol(name, SymbolKind::Function, kNone, index);
  } else if (Symbol& symbol = module_.symbols[known]; symbol.kind == SymbolKind::Unresolved) {
    symbol = {symbol.name, SymbolKind::Function, kNone, index};
  }
}

// After `(`, to `)`.
void Parser::read_parameters(std::vector<Variable>& list, SymbolKind kind) {
  if (cursor_.accept(')')) return;
  do {
    const std::string_view keyword = cursor_.peek_keyword();
    if (keyword != "param" && keyword != "reg")
      cursor_.fail_expected("'.param' or '.reg' of a parameter");
    Variable variable = read_variable_type("of a parameter");
    cursor_.skip();
    const char* place = cursor_.at;
    read_declarator(variable, false);
    const auto index = static_cast<std::uint32_t>(list.size());
    if (kind == SymbolKind::Unresolved) {  // of a prototype: the name means nothing
    } else if (variable.space == Space::Register) {
      RegisterDecl decl;
      decl.type = variable.type;
      decl.vector = variable.vector;
      decl.line = variable.line;
      variable.decl = {declare_register(declared_name_, decl, place)};
    } else {
      const std::uint32_t name = names_.find_or_add(declared_name_);
      bind(Unbind::Slot::Local, name, add_symbol(name, kind, function_, index));
    }
    list.push_back(variable);
  } while (cursor_.accept(','));
  cursor_.expect(')', "after the parameters");
}

void Parser::read_function_directives(Function& function) {
  for (;;) {
    const std::string_view keyword = cursor_.peek_keyword();
    if (keyword.empty()) return;
    if (keyword == "pragma") {
      cursor_.take_keyword(keyword);
      do {
        function.pragmas.push_back(intern(cursor_.string()));
      } while (cursor_.accept(','));
      cursor_.expect(';', "after '.pragma'");
      continue;
    }
    const auto all = directives();
    const auto row = std::find_if(all.begin(), all.end(), [keyword](const DirectiveInfo& info) {
      return info.text == keyword;
    });
    if (row == all.end()) {
      if (!function.entry && ends_declaration()) return;
      cursor_.fail_expected("a directive of the function, '{' or ';'");
    }
    const char* place = cursor_.at;
    cursor_.take_keyword(keyword);
    Directive directive;
    directive.kind = static_cast<DirectiveKind>(row - all.begin());
    while (directive.count < row->max_values) {
      if (directive.count > 0 && !cursor_.accept(',')) break;
      directive.values[directive.count++] = static_cast<std::uint32_t>(
          read_number(cursor_, "a number after '." + std::string(row->text) + "'", kMax32));
    }
    if (directive.count < row->min_values) {
      cursor_.fail(place, format_text("expected {} numbers after '.{}', found {}", row->min_values,
                                      row->text, directive.count));
    }
    function.directives.push_back(directive);
  }
}

}  // namespace ptxgen::inline v0::ptx::reading
