/**
 * Golden transcripts: clients of the revisions before 2026-07-28 get the same bytes in every release. The requests are
 * those of SDK 1.x, of the Python client and of the inspector, and plain ones.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { INSTRUCTIONS } from '../../../src/io/mcp/instructions.ts';
import { startMcp } from '../../support/mcp.ts';

interface Exchange {
  readonly client: string;
  readonly title: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  readonly answer: Answer;
}

interface Answer {
  readonly status: number;
  readonly type: string | null;
  readonly hasSession: boolean;
  /** The bytes. Of a long answer their length and SHA-256, which change with the catalog. */
  readonly text: string;
}

/** Characters of an answer that is recorded as it is. */
const LONG = 2_000;
const FILE = fileURLToPath(new URL('../../../../test/io/mcp/transcripts.json', import.meta.url));
const exchanges = JSON.parse(readFileSync(FILE, 'utf8')) as Exchange[];

const mcp = await startMcp({
  backend: () => ({ body: '{"result":{"available":"1000.00","id":9223372036854775807}}' }),
});
t.teardown(() => mcp.close());

async function answerTo({ method, headers, body }: Exchange): Promise<Answer> {
  const answer = await fetch(`${mcp.http.url}/mcp`, { method, headers, body });
  // The one member that was added since: clients of every revision read `instructions`, and none needs it.
  const text = (await answer.text()).replace(`,"instructions":${JSON.stringify(INSTRUCTIONS)}}}`, '}}');
  const hash = createHash('sha256').update(text).digest('hex');
  return {
    status: answer.status,
    type: answer.headers.get('content-type'),
    hasSession: answer.headers.has('mcp-session-id'),
    text: text.length > LONG ? `${text.length} characters, sha256 ${hash}` : text,
  };
}

for (const exchange of exchanges) {
  // covers R37
  t.test(`transcript of ${exchange.client}: ${exchange.title} is answered with the same bytes`, async (t) => {
    t.strictSame(await answerTo(exchange), exchange.answer);
  });
}
