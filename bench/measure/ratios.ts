/** Which subjects are compared with each other, and what comes of it. */
import type { ComparePlan, Measured, Ratio, Round, Subject } from './measure.ts';
import { intervalOfSample } from './statistics.ts';

type Pairs = NonNullable<ComparePlan['pairs']>;

/** The first subject of each group with its others, then the pairs that were asked for, each once. */
export function pairsOf(subjects: readonly Pick<Subject, 'name' | 'group'>[], asked: Pairs): Pairs {
  const groups = new Map<string | undefined, string[]>();
  for (const { name, group } of subjects) groups.set(group, [...(groups.get(group) ?? []), name]);
  const pairs = [...groups.values()].flatMap(([of, ...others]) =>
    of === undefined ? [] : others.map((against) => ({ of, against })),
  );
  for (const pair of asked) {
    const taken = [pair.of, pair.against].every((one) => subjects.some(({ name }) => name === one));
    const known = pairs.some(({ of, against }) => of === pair.of && against === pair.against);
    if (taken && !known) pairs.push(pair);
  }
  return pairs;
}

export function ratiosOf(pairs: Pairs, measured: readonly Measured[]): Ratio[] {
  const named = new Map(measured.map((each) => [each.name, each]));
  return pairs.flatMap(({ of, against }) => {
    const [one, other] = [named.get(of), named.get(against)];
    return one === undefined || other === undefined ? [] : [ratioOf(one, other)];
  });
}

function ratioOf(one: Measured, other: Measured): Ratio {
  const ofRounds = (pick: (mine: Round, theirs: Round) => number | undefined) =>
    one.rounds.flatMap((mine, index) => {
      const theirs = other.rounds[index];
      const ratio = theirs === undefined ? undefined : pick(mine, theirs);
      return ratio === undefined ? [] : [ratio];
    });
  const times = ofRounds((mine, theirs) =>
    mine.cpuUsPerAnswer === undefined || theirs.cpuUsPerAnswer === undefined || mine.cpuUsPerAnswer <= 0
      ? undefined
      : theirs.cpuUsPerAnswer / mine.cpuUsPerAnswer,
  );
  return {
    of: one.name,
    against: other.name,
    rate: intervalOfSample(ofRounds((mine, theirs) => mine.ratePerSecond / theirs.ratePerSecond)),
    processorTime: times.length === 0 ? undefined : intervalOfSample(times),
  };
}
