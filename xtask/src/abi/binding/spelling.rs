//! From the notation of [`crate::abi::types`] to Rust: `*const char` becomes `*const c_char`.

use crate::abi::facts::{Facts, Kind};
use anyhow::{Result, bail};
use std::collections::BTreeMap;

/// What structs and unions are called in Rust: by their alias if C has given them one.
pub(super) struct Names(BTreeMap<String, String>);

impl Names {
    pub(super) fn new(facts: &Facts) -> Names {
        let mut names = BTreeMap::new();
        for ((kind, name), text) in facts {
            let Some(tagged) = text.strip_prefix("= ").filter(|_| *kind == Kind::Type) else {
                continue;
            };
            if is_tagged(tagged) {
                names.insert(tagged.to_owned(), name.clone());
            }
        }
        Names(names)
    }

    /// The Rust name of `struct uv_loop_s`, `uv_stat_t` or `struct sockaddr`.
    pub(super) fn of(&self, spelled: &str) -> String {
        if let Some(alias) = self.0.get(spelled) {
            return alias.clone();
        }
        let name = spelled
            .split_once(' ')
            .map_or(spelled, |(_keyword, tag)| tag);
        match name {
            "_IO_FILE" => "libc::FILE".to_owned(),
            "__dirstream" => "libc::DIR".to_owned(),
            _ if name.trim_start_matches('_').starts_with("uv_") => name.to_owned(),
            _ => format!("libc::{name}"),
        }
    }

    /// A type in Rust.
    pub(super) fn rust(&self, spelled: &str) -> Result<String> {
        if let Some(function) = spelled.strip_prefix("*fn(") {
            let function = Function::parse(&format!("fn({function}"))?;
            let parameters = self.all(&function.parameters)?.join(", ");
            return Ok(format!(
                "Option<unsafe extern \"C\" fn({parameters}){}>",
                self.result(&function.result)?
            ));
        }
        if let Some(target) = spelled.strip_prefix('*') {
            let target = unqualified(target);
            return Ok(match target.strip_prefix("const ") {
                Some(target) => format!("*const {}", self.rust(target)?),
                None => format!("*mut {}", self.rust(target)?),
            });
        }
        if let Some(array) = spelled.strip_prefix('[') {
            let Some((count, element)) = array.split_once(']') else {
                bail!("an array without an end: {spelled}");
            };
            return Ok(format!("[{}; {count}]", self.rust(element)?));
        }
        let spelled = unqualified(spelled);
        let spelled = spelled.strip_prefix("const ").unwrap_or(spelled);
        Ok(match spelled {
            "void" => "c_void".to_owned(),
            "char" => "c_char".to_owned(),
            "unsigned char" => "u8".to_owned(),
            "short int" => "i16".to_owned(),
            "short unsigned int" => "u16".to_owned(),
            "int" => "c_int".to_owned(),
            "unsigned int" => "c_uint".to_owned(),
            "long int" | "long long int" => "i64".to_owned(),
            "long unsigned int" | "long long unsigned int" => "u64".to_owned(),
            "double" => "f64".to_owned(),
            "size_t" => "usize".to_owned(),
            "ssize_t" => "isize".to_owned(),
            "fn" => bail!("a function where only a pointer to one can be"),
            _ if spelled.starts_with("enum ") => "c_int".to_owned(),
            _ if spelled.ends_with('}') => bail!("a type without a name: {spelled}"),
            _ => self.of(spelled),
        })
    }

    pub(super) fn all(&self, spelled: &[String]) -> Result<Vec<String>> {
        spelled.iter().map(|one| self.rust(one)).collect()
    }

    /// What follows a function's parameters.
    pub(super) fn result(&self, spelled: &str) -> Result<String> {
        Ok(match spelled {
            "void" => String::new(),
            _ => format!(" -> {}", self.rust(spelled)?),
        })
    }
}

/// A function's type in parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) parameters: Vec<String>,
    pub(super) result: String,
}

impl Function {
    /// Takes `fn(int, *fn(int) -> void) -> int` apart.
    pub(super) fn parse(spelled: &str) -> Result<Function> {
        let Some(rest) = spelled.strip_prefix("fn(") else {
            bail!("not a function: {spelled}");
        };
        let mut parameters = vec![String::new()];
        let mut depth = 0_usize;
        for (at, letter) in rest.char_indices() {
            match letter {
                '(' => depth += 1,
                ')' if depth == 0 => {
                    let Some(result) = rest[at..].strip_prefix(") -> ") else {
                        bail!("a function without a result: {spelled}");
                    };
                    let all = parameters.iter().map(|one| one.trim().to_owned());
                    return Ok(Function {
                        parameters: all.filter(|one| !one.is_empty()).collect(),
                        result: result.to_owned(),
                    });
                }
                ')' => depth -= 1,
                ',' if depth == 0 => {
                    parameters.push(String::new());
                    continue;
                }
                _ => {}
            }
            if let Some(last) = parameters.last_mut() {
                last.push(letter);
            }
        }
        bail!("a function without an end: {spelled}")
    }
}

pub(super) fn is_tagged(spelled: &str) -> bool {
    spelled.starts_with("struct ") || spelled.starts_with("union ")
}

/// Without what Rust has no word for.
fn unqualified(spelled: &str) -> &str {
    let spelled = spelled.strip_prefix("volatile ").unwrap_or(spelled);
    spelled.strip_prefix("restrict ").unwrap_or(spelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(spelled: &str) -> String {
        let facts = Facts::from([(
            (Kind::Type, "uv_loop_t".to_owned()),
            "= struct uv_loop_s".to_owned(),
        )]);
        Names::new(&facts).rust(spelled).unwrap()
    }

    #[test]
    fn types_are_spelled_in_rust() {
        assert_eq!(rust("*const char"), "*const c_char");
        assert_eq!(rust("**struct uv_loop_s"), "*mut *mut uv_loop_t");
        assert_eq!(rust("[4]*void"), "[*mut c_void; 4]");
        assert_eq!(rust("[2][3]int"), "[[c_int; 3]; 2]");
        assert_eq!(rust("*const struct sockaddr"), "*const libc::sockaddr");
        assert_eq!(rust("*pthread_mutex_t"), "*mut libc::pthread_mutex_t");
        assert_eq!(
            rust("*fn(*fn(int, long int) -> void, *void) -> *void"),
            "Option<unsafe extern \"C\" fn(Option<unsafe extern \"C\" fn(c_int, i64)>, *mut c_void) -> *mut c_void>"
        );
    }

    #[test]
    fn a_nameless_type_is_refused() {
        let names = Names::new(&Facts::new());
        assert!(names.rust("union {}").is_err());
        assert!(names.rust("*struct {}").is_err());
    }
}
