// Stands before everything else in the page: writes down whatever goes wrong.
const TROUBLE = [];
addEventListener("error", (event) => TROUBLE.push("error: " + event.message));
addEventListener("unhandledrejection", (event) => TROUBLE.push("rejected: " + event.reason));
addEventListener("securitypolicyviolation", (event) => TROUBLE.push("asked for " + event.blockedURI));
for (const kind of ["error", "warn"]) {
  const say = console[kind].bind(console);
  console[kind] = (...words) => { TROUBLE.push(kind + ": " + words.join(" ")); say(...words); };
}
