/** Answers to a caller for the outcome of a request to another MCP server, and the audit record of it. */
import { GatewayError } from '../../../domain/errors.ts';
import { errorText, toolResult } from '../answer.ts';
import { audit, refused } from '../audit.ts';
import type { ToolCall } from '../calls/backend-call.ts';
import { resultEnvelope } from '../rpc.ts';
import type { UpstreamOutcome } from './calls.ts';
import type { UpstreamServer } from './types.ts';

type Answered = Exclude<UpstreamOutcome, { readonly kind: 'failed' }>;

/** Codes of a server that does not have what was asked for, or not with these arguments. */
const REFUSALS: Readonly<Record<number, 'ResourceNotFound' | 'InvalidParams'>> = {
  [-32002]: 'ResourceNotFound',
  [-32602]: 'InvalidParams',
};
/** Characters of the message of a server. */
const REASON_MAX = 500;

/** Answers tools/call: also an error of the server, and a login that is missing, is a result that a model can read. */
export function toolAnswer(outcome: Answered, server: UpstreamServer, call: ToolCall): string {
  const failing = (text: string) => resultEnvelope(call.id, toolResult(text, true, call.members));
  switch (outcome.kind) {
    case 'answer':
      audit(call, call.record, outcome.isError ? 'error' : 'ok');
      return resultEnvelope(call.id, outcome.text);
    case 'refused': {
      audit(call, call.record, 'error');
      const { code, message } = outcome;
      return failing(JSON.stringify({ error: { code, message } }));
    }
    case 'loginRequired':
      audit(call, call.record, 'denied');
      return failing(errorText('UpstreamLoginRequired', loginDetail(server, call)));
    case 'unapproved':
      throw refused(
        call,
        call.record,
        'denied',
        'Unauthorized',
        'this tool waits for the approval of an admin',
      );
  }
}

/** Answers prompts/get and resources/read. */
export function offerAnswer(outcome: Answered, server: UpstreamServer, call: ToolCall): string {
  if (outcome.kind === 'loginRequired' || outcome.kind === 'unapproved')
    throw refused(call, call.record, 'denied', 'UpstreamLoginRequired', loginDetail(server, call));
  audit(call, call.record, outcome.kind === 'answer' ? 'ok' : 'error');
  if (outcome.kind === 'answer') return resultEnvelope(call.id, outcome.text);
  throw new GatewayError(REFUSALS[outcome.code] ?? 'ToolFailed', outcome.message.slice(0, REASON_MAX));
}

/** Returns the address at which the person connects the server: a link that clients show. */
export function loginAddress({ name }: UpstreamServer, { context }: ToolCall): string {
  return `${context.site.baseUrl}/#servers/${name}`;
}

export function loginDetail(server: UpstreamServer, call: ToolCall): string {
  return `connect ${server.title} at ${loginAddress(server, call)}`;
}
