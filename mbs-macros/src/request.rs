//! What the macro is asked for.
//!
//! Input: tokens. Output: a [`Request`] a module, or an error at the token that is wrong.

use mbs_codegen::diagnostics::nearest;
use mbs_codegen::emission::{MAX_LANES, Target, identifier};
use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::program::{BundleKind, Fma, Pairs, ScalarType, Simd, Steps};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Ident, LitInt, LitStr, Result, Token, Visibility, braced, bracketed};

/// All modules of one invocation.
pub(crate) struct Invocation(pub(crate) Vec<Request>);

/// One module.
pub(crate) struct Request {
    /// Attributes that go before it.
    pub(crate) attributes: Vec<Attribute>,
    /// The model file.
    pub(crate) file: LitStr,
    /// What the generator is asked for.
    pub(crate) generator: mbs_codegen::Request,
}

impl Parse for Invocation {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut requests = Vec::new();
        while !input.is_empty() {
            requests.push(input.parse()?);
        }
        if requests.is_empty() {
            return Err(
                input.error("write `pub mod NAME = \"MODEL.yaml\";`, or the name of a model file alone")
            );
        }
        Ok(Invocation(requests))
    }
}

impl Parse for Request {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let (target, file) = if input.peek(LitStr) {
            (Target::default(), input.parse()?)
        } else {
            let visibility = visibility(&input.parse()?)?;
            input.parse::<Token![mod]>()?;
            let name: Ident = input.parse()?;
            let module = name.to_string();
            if identifier(&module) != module {
                return Err(Error::new(
                    name.span(),
                    "a module's name must be an identifier of ASCII letters",
                ));
            }
            input.parse::<Token![=]>()?;
            (Target { module: Some(module), visibility, lanes: None }, input.parse()?)
        };
        let mut generator = mbs_codegen::Request { target, ..mbs_codegen::Request::default() };
        if input.peek(syn::token::Brace) {
            let content;
            braced!(content in input);
            settings(&content, &mut generator)?;
            input.parse::<Option<Token![;]>>()?;
        } else if !input.is_empty() {
            input.parse::<Token![;]>()?;
        }
        Ok(Request { attributes, file, generator })
    }
}

/// The visibility as the generator prints it.
fn visibility(visibility: &Visibility) -> Result<String> {
    match visibility {
        Visibility::Inherited => Ok(String::new()),
        Visibility::Public(_) => Ok("pub".into()),
        Visibility::Restricted(restricted) if restricted.path.is_ident("crate") => Ok("pub(crate)".into()),
        other => Err(Error::new_spanned(other, "a module is `pub`, `pub(crate)` or private")),
    }
}

const SETTINGS: [&str; 10] =
    ["freeze", "reference", "bundles", "case", "lanes", "pairs", "scalar", "fma", "steps", "simd"];

fn settings(input: ParseStream<'_>, request: &mut mbs_codegen::Request) -> Result<()> {
    let mut seen: Vec<String> = Vec::new();
    while !input.is_empty() {
        let key = input.call(Ident::parse_any)?;
        let name = key.to_string();
        if seen.contains(&name) {
            return Err(Error::new(key.span(), format!("`{name}` is given twice")));
        }
        if name != "freeze" && SETTINGS.contains(&name.as_str()) {
            input.parse::<Token![:]>()?;
        }
        match name.as_str() {
            "freeze" => request.options.freeze = true,
            "reference" => request.options.reference = reference(&input.call(Ident::parse_any)?)?,
            "bundles" => request.options.bundles = bundles(input)?,
            "case" => request.case = Some(input.parse::<LitStr>()?.value()),
            "lanes" => request.target.lanes = Some(lanes(&input.parse()?)?),
            "scalar" => request.options.scalar = scalar(&input.call(Ident::parse_any)?)?,
            "fma" => request.options.fma = fma(&input.call(Ident::parse_any)?)?,
            "steps" => request.options.steps = steps(&input.call(Ident::parse_any)?)?,
            "simd" => request.options.simd = simd(&input.call(Ident::parse_any)?)?,
            "pairs" => request.options.pairs = pairs(&input.call(Ident::parse_any)?)?,
            _ => return Err(Error::new(key.span(), unknown("setting", &name, &SETTINGS))),
        }
        seen.push(name);
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(())
}

fn lanes(samples: &LitInt) -> Result<usize> {
    match samples.base10_parse() {
        Ok(count @ 1..=MAX_LANES) => Ok(count),
        _ => Err(Error::new(samples.span(), format!("from 1 to {MAX_LANES} samples at once"))),
    }
}

fn scalar(word: &Ident) -> Result<ScalarType> {
    let name = word.to_string();
    ScalarType::from_name(&name).ok_or_else(|| {
        Error::new(word.span(), unknown("scalar", &name, &ScalarType::ALL.map(ScalarType::name)))
    })
}

fn fma(word: &Ident) -> Result<Fma> {
    let name = word.to_string();
    Fma::from_name(&name)
        .ok_or_else(|| Error::new(word.span(), unknown("choice", &name, &Fma::ALL.map(Fma::name))))
}

fn steps(word: &Ident) -> Result<Steps> {
    let name = word.to_string();
    Steps::from_name(&name)
        .ok_or_else(|| Error::new(word.span(), unknown("choice", &name, &Steps::ALL.map(Steps::name))))
}

fn simd(word: &Ident) -> Result<Simd> {
    let name = word.to_string();
    Simd::from_name(&name)
        .ok_or_else(|| Error::new(word.span(), unknown("choice", &name, &Simd::ALL.map(Simd::name))))
}

fn pairs(word: &Ident) -> Result<Pairs> {
    match word.to_string().as_str() {
        "auto" => Ok(Pairs::Auto),
        "flat" => Ok(Pairs::Flat),
        "rolled" => Ok(Pairs::Rolled),
        other => Err(Error::new(word.span(), unknown("choice", other, &["auto", "flat", "rolled"]))),
    }
}

fn reference(word: &Ident) -> Result<ReferencePoint> {
    match word.to_string().as_str() {
        "origin" => Ok(ReferencePoint::Origin),
        "com" => Ok(ReferencePoint::CentreOfMass),
        other => Err(Error::new(word.span(), unknown("reference", other, &["origin", "com"]))),
    }
}

fn bundles(input: ParseStream<'_>) -> Result<Vec<BundleKind>> {
    if input.peek(syn::token::Bracket) {
        let content;
        bracketed!(content in input);
        let words = Punctuated::<Ident, Token![,]>::parse_terminated(&content)?;
        let found: Result<Vec<_>> = words.iter().map(bundle).collect();
        return Ok(found?.concat());
    }
    let word = input.call(Ident::parse_any)?;
    let name = word.to_string();
    match BundleKind::REQUESTS.iter().find(|(own, _)| *own == name) {
        Some((_, kinds)) => Ok(kinds.to_vec()),
        None => Err(Error::new(word.span(), "write `all`, `standard`, `gradient`, or names in brackets")),
    }
}

fn bundle(word: &Ident) -> Result<&'static [BundleKind]> {
    let name = word.to_string();
    BundleKind::requested(&name).ok_or_else(|| {
        let names: Vec<&str> = BundleKind::request_names().collect();
        Error::new(word.span(), unknown("bundle", &name, &names))
    })
}

fn unknown(what: &str, name: &str, names: &[&str]) -> String {
    match nearest(name, names.iter().copied()) {
        Some(near) => format!("there is no {what} `{name}`; did you mean `{near}`?"),
        None => format!("there is no {what} `{name}`; there are: {}", names.join(", ")),
    }
}
