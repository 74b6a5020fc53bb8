//! From the macro's tokens to the module's.
//!
//! Input: tokens and the folder that paths are relative to. Output: for each module what the generator prints, and
//! beside it a line that lets the compiler know of the file. Where something is wrong there is a `compile_error!` in
//! place of the module; the other modules are there all the same.

use crate::request::{Invocation, Request};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use std::io::ErrorKind;
use std::path::Path;
use syn::Error;

/// The expansion of the macro.
pub(crate) fn expand(input: TokenStream, folder: &Path) -> TokenStream {
    match syn::parse2::<Invocation>(input) {
        Ok(Invocation(requests)) => requests
            .iter()
            .map(|request| module(request, folder).unwrap_or_else(|error| error.into_compile_error()))
            .collect(),
        Err(error) => error.into_compile_error(),
    }
}

fn module(request: &Request, folder: &Path) -> Result<TokenStream, Error> {
    let (name, span) = (request.file.value(), request.file.span());
    let path = folder.join(&name);
    let text =
        std::fs::read_to_string(&path).map_err(|error| Error::new(span, unreadable(&name, &path, &error)))?;
    let generated = mbs_codegen::generate(&name, &text, &request.generator)
        .map_err(|diagnostics| Error::new(span, diagnostics.render(&name, &text)))?;
    let code: TokenStream =
        generated.code.parse().map_err(|error| Error::new(span, format!("the generated module: {error}")))?;
    let attributes = &request.attributes;
    let watch = watch(&path);
    let warnings = warnings(&generated.warnings.render(&name, &text), span);
    Ok(quote! { #(#attributes)* #code #watch #warnings })
}

/// Makes the compiler look at the file, so that Cargo builds again when it changes.
fn watch(path: &Path) -> TokenStream {
    // The compiler takes a relative path as relative to the source file.
    let absolute = path.canonicalize().unwrap_or_else(|_| path.into());
    match absolute.to_str() {
        Some(path) => quote! { const _: &[u8] = ::core::include_bytes!(#path); },
        None => quote!(),
    }
}

/// A macro has no way to warn but to use something deprecated.
fn warnings(text: &str, span: Span) -> TokenStream {
    if text.is_empty() {
        return quote!();
    }
    let note = format!("\n{text}");
    let used = quote_spanned! { span => MODEL_WARNING };
    quote! {
        const _: () = {
            #[deprecated(note = #note)]
            const MODEL_WARNING: () = ();
            #used
        };
    }
}

fn unreadable(name: &str, path: &Path, error: &std::io::Error) -> String {
    if path.is_dir() {
        return format!("cannot read `{name}`: it is a directory; a model is a file");
    }
    let reason = match error.kind() {
        ErrorKind::NotFound => {
            "there is no such file; the path is relative to the package's directory".into()
        }
        ErrorKind::InvalidData => "it is not UTF-8 text".into(),
        _ => error.to_string(),
    };
    format!("cannot read `{name}`: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(input: &str) -> String {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        expand(input.parse().expect("tokens"), &folder).to_string()
    }

    /// Tokens of a text, as the compiler sees them: without comments and spaces.
    fn tokens(text: &str) -> String {
        text.parse::<TokenStream>().expect("tokens").to_string()
    }

    #[test]
    fn the_module_is_what_the_generator_prints() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../models/pendulum.yaml"))
            .expect("the model");
        let generated = mbs_codegen::generate("pendulum.yaml", &text, &Default::default()).expect("a model");
        let printed = tokens(&generated.code);
        let ours = expanded("pub mod pendulum = \"models/pendulum.yaml\";");
        assert!(ours.starts_with(&printed));
        let rest = &ours[printed.len()..];
        assert!(rest.contains("include_bytes") && rest.contains("pendulum.yaml"), "{rest}");
        assert!(!rest.contains("MODEL_WARNING"), "{rest}");
        assert!(expanded("\"models/pendulum.yaml\"").starts_with(&printed), "the short form");
        let documented = expanded("/// Swings.\npub mod pendulum = \"models/pendulum.yaml\";");
        assert!(documented.starts_with(&tokens("/// Swings.\n#[doc = \"\"]").replace("# [doc = \"\"]", "")));
        assert!(documented.contains(&printed));
    }

    #[test]
    fn settings_reach_the_generator() {
        let frozen = expanded(
            "mod m = \"models/arm7.yaml\" {freeze, reference: com, bundles: [energy, mass_matrix], case: \"heavy\"}
             pub(crate) mod n = \"models/arm7.yaml\" {bundles: all};",
        );
        let [first, second] = ["mod m {", "pub (crate) mod n {"].map(|head| frozen.find(head).expect(head));
        let (m, n) = (&frozen[first..second], &frozen[second..]);
        assert!(!frozen[..first].trim_end().ends_with("pub"));
        assert!(m.contains("rt :: MassMatrix for Model") && !m.contains("rt :: ForwardDynamics for Model"));
        assert!(m.contains("NP : usize = 0 ;") && n.contains("NP : usize = 4 ;"));
        assert!(n.contains("rt :: MarkerJacobians for Model"));
        assert!(m.contains("type S = f64 ;"));
        assert!(expanded("mod m = \"models/pendulum.yaml\" {scalar: f32}").contains("type S = f32 ;"));
        // The same bits everywhere: nothing that may be fused, and functions that are the same on every target.
        let [never, target] = ["fma: never, lanes: 4", "fma: target, lanes: 4"]
            .map(|settings| expanded(&format!("mod m = \"models/five_bar.yaml\" {{{settings}}}")));
        assert!(!never.contains("mul_add") && !never.contains("mbs_runtime :: math"));
        assert!(
            target.contains("m :: mul_add")
                && target.contains("l :: mul_add")
                && target.contains("b :: mul_add")
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (input, message) in [
            ("", "write `pub mod NAME"),
            ("pub mod m = 3;", "expected string literal"),
            ("pub(super) mod m = \"models/pendulum.yaml\";", "`pub`, `pub(crate)` or private"),
            ("mod m = \"models/nothing.yaml\";", "cannot read `models/nothing.yaml`: there is no such file"),
            ("mod m = \"models\";", "it is a directory"),
            (
                "mod m = \"models/pendulum.yaml\" {frieze}",
                "there is no setting `frieze`; did you mean `freeze`?",
            ),
            ("mod m = \"models/pendulum.yaml\" {freeze, freeze}", "`freeze` is given twice"),
            ("mod m = \"models/pendulum.yaml\" {reference: here}", "there is no reference `here`"),
            ("mod m = \"models/pendulum.yaml\" {bundles: some}", "write `all`, `standard`"),
            ("mod m = \"models/pendulum.yaml\" {bundles: [enregy]}", "did you mean `energy`?"),
            (
                "mod m = \"models/pendulum.yaml\" {scalar: f23}",
                "there is no scalar `f23`; did you mean `f32`?",
            ),
            ("mod m = \"models/pendulum.yaml\" {fma: nevre}", "did you mean `never`?"),
            ("mod m = \"models/cart_pole.yaml\" {case: \"shake\"}", "has no case `shake`"),
        ] {
            let ours = expanded(input);
            assert!(ours.contains("compile_error"), "{input}: {ours}");
            assert!(ours.contains(message), "{input}: {ours}");
        }
        // One that is wrong does not take the others with it.
        let both = expanded("mod a = \"none.yaml\"; mod b = \"models/pendulum.yaml\";");
        assert!(both.contains("compile_error") && both.contains("mod b {"));
    }

    #[test]
    fn problems_of_the_file_come_with_their_places() {
        let folder = std::env::temp_dir().join(format!("mbs-macros-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("bad.yaml"), "mbs: 1\nname: bad\nbodeis: {}\n").expect("a file");
        let ours = expand("mod m = \"bad.yaml\";".parse().expect("tokens"), &folder).to_string();
        assert!(ours.contains("bad.yaml:3:1: error"), "{ours}");
        assert!(ours.contains("did you mean `bodies`"), "{ours}");
        std::fs::write(folder.join("latin.yaml"), b"name: \xe9\n").expect("a file");
        let ours = expand("mod m = \"latin.yaml\";".parse().expect("tokens"), &folder).to_string();
        assert!(ours.contains("it is not UTF-8 text"), "{ours}");
        std::fs::remove_dir_all(&folder).expect("the folder");
    }

    #[test]
    fn warnings_are_shown_as_a_deprecation() {
        let shown = warnings("m.yaml:1:1: warning: odd\n", Span::call_site()).to_string();
        assert!(shown.contains("deprecated") && shown.contains("odd"));
        assert!(warnings("", Span::call_site()).is_empty());
    }
}
