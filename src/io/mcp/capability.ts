/**
 * Resolves the codes of capability mode (spec 5.2) by asking the modules that issue them. Good answers are cached briefly,
 * so that a conversation does not ask for every message. Modules check the code again at each call.
 */

import type { CapabilityFamily } from '../../domain/access.ts';
import { GatewayError } from '../../domain/errors.ts';
import { keepNewest } from '../../domain/limits/newest.ts';
import { SECOND_MS } from '../../domain/time.ts';
import type { RouteContext } from '../http/table/route.ts';
import { endpointUrl, parseEndpoint } from '../http-client/endpoint.ts';
import { factsOf, gatewayHeaders } from '../http-client/headers.ts';
import { FACTS_MAX_BYTES, type ModuleResult } from '../http-client/types.ts';
import type { ModuleClient } from '../modules/client.ts';
import { endModuleCall, openModuleCall, withTraceparent } from '../tracing/calls.ts';
import { isObject } from './input-schema.ts';

/** Modules that issue codes, and the family of each: a module cannot open the tools of another. */
const FAMILIES: Readonly<Record<string, CapabilityFamily>> = {
  chat: 'chat',
  payments: 'wallet',
  wallet: 'wallet',
};
const TIMEOUT_MS = 5 * SECOND_MS;
/** The cache accepts a revoked code for this long. Calls with it fail at the module at once. */
const CACHED_MS = 10 * SECOND_MS;
const CACHED_MAX = 10_000;
/** `error.code` of a module for an unknown code (docs/modules.md). */
const UNKNOWN_CODE = 2009;

/** `unknown`: a module says that the code is unknown. `unavailable`: no module answered. */
type Resolution = CapabilityFamily | 'unknown' | 'unavailable';

/** The answer of one module; `absent`: it issues no codes. */
type CodeCheck = 'valid' | 'unknown' | 'absent' | 'failed';

interface CapabilityOptions {
  readonly modules: Pick<ModuleClient, 'call'>;
  readonly moduleAddresses: ReadonlyMap<string, string>;
}

export class CapabilityCodes {
  readonly #options: CapabilityOptions;
  readonly #known = new Map<string, { family: CapabilityFamily; untilMs: number }>();
  readonly #pending = new Map<string, Promise<Resolution>>();

  constructor(options: CapabilityOptions) {
    this.#options = options;
  }

  /** The family where it is cached; undefined where `resolve` is needed. */
  cached(code: string, nowMs: number): CapabilityFamily | undefined {
    const found = this.#known.get(code);
    if (found === undefined || nowMs < found.untilMs) return found?.family;
    this.#known.delete(code);
    return undefined;
  }

  /** Asks all modules in parallel, once for all requests with the same code. Never rejects when a module fails. */
  resolve(code: string, context: RouteContext): Promise<Resolution> {
    const waiting = this.#pending.get(code);
    if (waiting !== undefined) return waiting;
    const resolution = this.#ask(code, context).finally(() => this.#pending.delete(code));
    this.#pending.set(code, resolution);
    return resolution;
  }

  async #ask(code: string, context: RouteContext): Promise<Resolution> {
    const names = Object.keys(FAMILIES).filter((name) => this.#options.moduleAddresses.has(name));
    const checks = await Promise.all(names.map((name) => this.#check(name, code, context)));
    const family = FAMILIES[names[checks.indexOf('valid')] ?? ''];
    if (family !== undefined) {
      this.#store(code, family, context.nowMs + CACHED_MS);
      return family;
    }
    return checks.includes('failed') || !checks.includes('unknown') ? 'unavailable' : 'unknown';
  }

  async #check(module: string, code: string, context: RouteContext): Promise<CodeCheck> {
    const endpoint = `${module}:/${module}/v1/capability/resolve`;
    const parsed = parseEndpoint(endpoint, this.#options.moduleAddresses);
    const made = parsed.ok ? endpointUrl(parsed.endpoint, {}, { code }) : undefined;
    if (made?.ok !== true) return 'failed';
    const span = openModuleCall(context.span, 'GET', made.url, made.url.pathname);
    const headers = {
      ...withTraceparent(gatewayHeaders({ kind: 'anonymous' }, factsOf(context)), span),
      accept: 'application/json',
    };
    const request = { method: 'GET', url: made.url, headers, timeoutMs: TIMEOUT_MS, endpoint } as const;
    const result = await this.#options.modules.call(request);
    if (span !== undefined) endModuleCall(span, result);
    return checkOf(result, FAMILIES[module]);
  }

  #store(code: string, family: CapabilityFamily, untilMs: number): void {
    keepNewest(this.#known, CACHED_MAX, code, { family, untilMs });
  }
}

function checkOf(result: ModuleResult, family: CapabilityFamily | undefined): CodeCheck {
  if (!result.ok) return 'failed';
  const { status, body } = result.answer;
  if (status !== 200 && status !== 404) return 'failed';
  const { result: opened, error } = jsonOf(body);
  if (status === 404) return isObject(error) && error['code'] === UNKNOWN_CODE ? 'unknown' : 'absent';
  return isObject(opened) && opened['family'] === family ? 'valid' : 'failed';
}

function jsonOf(body: Buffer): Record<string, unknown> {
  if (body.length > FACTS_MAX_BYTES) return {};
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isObject(value) ? { ...value } : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

/** The same refusal for every invalid code, so that it does not tell why. */
export function invalidCode(): GatewayError {
  return new GatewayError('InvalidParams', 'invalid capability code');
}
