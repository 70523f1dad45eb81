// Why a text is no JSON, in the words of the parser.
#pragma once

#include <string>

namespace piper {

// Of what nlohmann::json says ("[json.exception.parse_error.101] parse error at line 1, column 3:
// syntax error while parsing value - ..."): the part behind the place, which a Location has.
inline std::string json_reason(const std::string& what) {
  const std::size_t place = what.find("parse error");
  const std::size_t colon = what.find(": ", place == std::string::npos ? 0 : place);
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

}  // namespace piper
