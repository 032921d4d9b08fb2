/** Texts that many records share: equal ones are shared, and the number of different ones is bounded. */
import t from 'tap';
import { shared, sharedTexts } from '../../../../src/actors/runtime/journal/shared-texts.ts';

t.test('shared texts: the result is equal, whatever was shared before', (t) => {
  const texts = ['', 'browser', 'Mozilla/5.0 (X11; Linux)', '\ud800', 'é', '__proto__', 'x'.repeat(10_000)];
  for (let time = 0; time < 3; time += 1) {
    for (const text of texts) t.equal(shared(Buffer.from(text, 'utf16le').toString('utf16le')), text);
  }
  t.end();
});

t.test('shared texts: neither many different ones nor a long one are kept', (t) => {
  let most = 0;
  for (let each = 0; each < 50_000; each += 1) {
    shared(`agent ${each}`);
    most = Math.max(most, sharedTexts());
  }
  t.equal(most, 2_048);
  const before = sharedTexts();
  shared('y'.repeat(257));
  t.equal(sharedTexts(), before);
  shared('y'.repeat(256));
  t.equal(sharedTexts(), before + 1);
  t.end();
});
