// Requests to the admin API of the node that serves this page. It decides how long an answer may take and what a refusal is, and
// keeps the token for as long as the tab lives: it is sent in a header and is written nowhere else.

const BASE = new URL("../v1/", location.href);
const PATIENCE = 8000;
const KEPT = "archipelago.token";

// The API said no, or nobody answered; then the status is 0.
export class Refused extends Error {
  constructor(status, code, message, wait = 0) {
    super(message);
    Object.assign(this, { status, code, wait });
  }
}

let token = kept();

export function hasToken() {
  return token !== "";
}

export function useToken(given) {
  token = given.trim();
  try {
    if (token) sessionStorage.setItem(KEPT, token);
    else sessionStorage.removeItem(KEPT);
  } catch {
    // A browser that keeps nothing is asked again after a reload.
  }
}

function kept() {
  try {
    return sessionStorage.getItem(KEPT) ?? "";
  } catch {
    return "";
  }
}

export async function read(path) {
  const response = await ask(path, { signal: AbortSignal.timeout(PATIENCE) });
  return body(response);
}

export async function act(path, wanted) {
  const headers = { "Content-Type": "application/json" };
  const request = { method: "POST", headers, signal: AbortSignal.timeout(60_000) };
  return body(await ask(path, wanted ? { ...request, body: JSON.stringify(wanted) } : request));
}

// The answer itself, to be read as it comes.
export async function follow(path, signal) {
  const response = await ask(path, { signal });
  if (!response.ok) await body(response);
  return response;
}

export function actorPath(kind, key) {
  return `actors/${encodeURIComponent(kind)}/${encodeURIComponent(key)}`;
}

async function ask(path, request) {
  const headers = { ...request.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  try {
    return await fetch(new URL(path, BASE), { cache: "no-store", ...request, headers });
  } catch (error) {
    if (request.signal?.aborted && error.name !== "TimeoutError") throw error;
    const late = error.name === "TimeoutError";
    throw new Refused(0, late ? "late" : "unreachable", late ? "it does not answer in time" : "it cannot be reached");
  }
}

async function body(response) {
  const said = await response.json().catch(() => null);
  if (response.ok && said === null) throw new Refused(0, "cut_off", "its answer broke off: what was asked for may have been done");
  if (response.ok) return said;
  const { code = "failed", message = `it answers ${response.status}` } = said?.error ?? {};
  throw new Refused(response.status, code, message, Number(response.headers.get("Retry-After") ?? 0));
}
