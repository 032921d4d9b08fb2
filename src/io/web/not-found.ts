/** The page of an address that no route has: for browsers, beside the JSON that every other client gets. */
import type { IncomingHead } from '../http/exchange/request.ts';
import { Reply } from '../http/table/route.ts';
import { PAGE_POLICY, pageFields } from './file-cache.ts';

/** Addresses of APIs, those of modules (`/wallet/v1/…`) among them: their errors are JSON for every client. */
const API_PATH =
  /^\/(?:(?:auth|mcp|internal|health|metrics|\.well-known|ProxyAdmin\/api)(?:\/|$)|docs\/swagger\/.|[^/]+\/v[0-9]+(?:\/|$))/;
const HTML_TYPE = 'text/html';

/** Answers with `page` where a browser asks for a page, else with undefined. */
export function createNotFound(page: Buffer): (head: IncomingHead) => Reply | undefined {
  const fields = [...pageFields(PAGE_POLICY), ['Vary', 'Accept']] as const;
  const reply = new Reply(404, page, `${HTML_TYPE}; charset=utf-8`, fields);
  return (head) => (asksForPage(head) ? reply : undefined);
}

function asksForPage(head: IncomingHead): boolean {
  if (head.method !== 'GET' && head.method !== 'HEAD') return false;
  const accept = head.joined('accept', ',')?.toLowerCase() ?? '';
  if (!accept.includes(HTML_TYPE) || API_PATH.test(head.path)) return false;
  return weightOf(HTML_TYPE, accept) > weightOf('application/json', accept);
}

/** Weight of a media type in an `Accept` field: that of the most specific range that has it (RFC 9110 12.5.1). */
function weightOf(type: string, accept: string): number {
  const ranges = [type, `${type.slice(0, type.indexOf('/'))}/*`, '*/*'];
  let best = ranges.length;
  let weight = 0;
  for (const part of accept.split(',')) {
    const [range = '', ...parameters] = part.split(';').map((text) => text.trim());
    const found = ranges.indexOf(range);
    if (found < 0 || found >= best) continue;
    best = found;
    weight = qualityOf(parameters);
  }
  return weight;
}

/** An invalid `q` weighs nothing. */
function qualityOf(parameters: readonly string[]): number {
  const parameter = parameters.find((text) => /^q\s*=/.test(text));
  if (parameter === undefined) return 1;
  const value = parameter.slice(parameter.indexOf('=') + 1).trim();
  return /^(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)$/.test(value) ? Number(value) : 0;
}
