/** Requests through the gateway to a module that records what arrives: as sent, or refused with the reason. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { judgeAll, shownOutcome } from '../../../tools/proxied-requests/judge.ts';
import { PROXIED_REQUESTS } from '../../../tools/proxied-requests/rows.ts';

t.setTimeout(240_000);

t.test('proxied requests: each arrives as it was sent, or is refused as the table says', async (t) => {
  const [gateway] = await judgeAll(false);
  const shown = PROXIED_REQUESTS.map(({ name }, index) => [name, gateway?.outcomes[index]]);
  t.same(
    shown,
    PROXIED_REQUESTS.map(({ name, expected }) => [name, expected]),
  );
});

t.test('proxied requests: the page has all rows with what the gateway does', async (t) => {
  const lines = readFileSync('docs/proxied-requests.md', 'utf8').split('\n').slice(6);
  const shown = lines.filter((line) => line !== '').map((line) => line.split(' | ').slice(0, 2));
  t.same(
    shown,
    PROXIED_REQUESTS.map(({ name, expected }) => [`| ${name}`, shownOutcome(expected)]),
  );
});
