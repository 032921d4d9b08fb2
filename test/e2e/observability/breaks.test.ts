/** `npm run alerts`: each alert has a break or a reason, and breaks fire their alerts through Prometheus. */
import t from 'tap';
import { BREAKS, NOT_BROKEN } from '../../../tools/alerts/main.ts';
import { alertsMissing } from '../../../tools/alerts/stage.ts';
import { RULES } from '../../../tools/dashboards/rules.ts';
import { depth } from '../../support/depth.ts';
import { AT_FULL_DEPTH, lacking } from '../../support/programs/tools.ts';

t.setTimeout(240_000);

/** The others take minutes: they are left to the command. */
const TRIED = ['the gateway is killed', 'a module is down', 'ambiguous requests arrive'];

t.test('breaks: each alert is of one break, or has a reason why it has none', async (t) => {
  const broken = BREAKS.flatMap(({ alerts }) => alerts);
  t.same([...broken, ...Object.keys(NOT_BROKEN)].sort(), RULES.map(({ alert }) => alert).sort());
});

const skip = depth.isQuick ? AT_FULL_DEPTH : lacking('Prometheus');

for (const each of BREAKS.filter(({ title }) => TRIED.includes(title)))
  t.test(`breaks: ${each.title}: ${each.alerts.length} alerts fire`, { skip }, async (t) => {
    t.same(await alertsMissing(each), []);
  });
