// ptxgen/driver.hpp - the Driver API as a table of functions
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/driver/api.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/driver/table.hpp"
