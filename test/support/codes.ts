/** A chat module for one-time codes: the real port over a client that keeps what it was asked to send. */
import type { CodePort } from '../../src/actors/runtime/ports.ts';
import type { ModuleRequest, ModuleResult } from '../../src/io/http-client/types.ts';
import { createCodePort } from '../../src/io/modules/chat.ts';

export interface SentCode {
  readonly channel: string;
  readonly address: string;
  readonly code: string;
}

export interface ChatFixture {
  readonly port: CodePort;
  /** Codes that arrived, the oldest first. */
  readonly outbox: SentCode[];
  readonly requests: ModuleRequest[];
  /** `lost`: the message arrives, its answer does not. */
  mode: 'up' | 'down' | 'refusing' | 'lost';
  last(): SentCode;
}

export function startChat(): ChatFixture {
  const outbox: SentCode[] = [];
  const requests: ModuleRequest[] = [];
  const secret = Promise.resolve(Buffer.alloc(32, 7));
  const fixture: ChatFixture = {
    outbox,
    requests,
    mode: 'up',
    last() {
      const sent = outbox.at(-1);
      if (sent === undefined) throw new Error('nothing was delivered');
      return sent;
    },
    port: createCodePort({
      secret: () => secret,
      chatUrl: 'http://chat.test/base',
      project: 'test',
      newRequestId: () => `code-${requests.length}`,
      modules: {
        async call(request): Promise<ModuleResult> {
          requests.push(request);
          const { mode } = fixture;
          if (mode === 'up' || mode === 'lost') outbox.push(JSON.parse(String(request.body)) as SentCode);
          if (mode === 'down' || mode === 'lost')
            return { ok: false, error: 'ModuleFailed', reason: 'test', elapsedMs: 0 };
          const status = mode === 'up' ? 200 : 500;
          const body = Buffer.from('{"result":{}}');
          const answer = { status, contentType: 'application/json', headers: {}, body };
          return { ok: true, answer, elapsedMs: 0 };
        },
      },
    }),
  };
  return fixture;
}

/** A code of as many digits that is not this one. */
export function wrongCode(code: string): string {
  return String((Number(code) + 1) % 10 ** code.length).padStart(code.length, '0');
}
