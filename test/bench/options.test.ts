import { resolve } from 'node:path';
import t from 'tap';
import { type CommandLine, optionsFor, parseOptions, type ScenarioTraits } from '../../bench/options.ts';

const PLAIN: ScenarioTraits = { name: 'plain', baseline: true };
const OWN: ScenarioTraits = {
  name: 'own',
  defaults: { connections: 10_000, rounds: 3 },
  noTarget: 'it publishes with a module key',
};

function line(...args: string[]): CommandLine {
  const parsed = parseOptions(args, [PLAIN, OWN]);
  if (!parsed.ok) throw new Error(parsed.faults.join('; '));
  return parsed.line;
}

function faults(...args: string[]): readonly string[] {
  const parsed = parseOptions(args, [PLAIN, OWN]);
  return parsed.ok ? [] : parsed.faults;
}

t.test('options: defaults, and given values', async (t) => {
  t.match(optionsFor(line('plain'), PLAIN), {
    scenario: 'plain',
    connections: 64,
    durationMs: 150,
    warmupMs: 1_500,
    rounds: 15,
    roundsMax: 300,
    users: 0,
    peers: false,
    target: undefined,
    ratePerSecond: undefined,
    maxRatePerSecond: undefined,
  });
  const given = line(
    'plain',
    '--peers',
    '--connections',
    '8',
    '--rate',
    '100',
    '--duration',
    '0.5',
    '--users',
    '3',
  );
  t.match(optionsFor(given, PLAIN), {
    peers: true,
    connections: 8,
    ratePerSecond: 100,
    durationMs: 500,
    users: 3,
  });
  t.match(line('plain', '--json', 'a.json', '--html', 'a.html'), { jsonFile: 'a.json', htmlFile: 'a.html' });
});

t.test(
  'options: a scenario has its own standard, the same in all, and the command line goes before it',
  async (t) => {
    for (const scenario of ['own', 'all'])
      t.match(optionsFor(line(scenario), OWN), { connections: 10_000, rounds: 3, durationMs: 150 });
    t.match(optionsFor(line('all', '--connections', '7', '--duration', '4'), OWN), {
      connections: 7,
      durationMs: 4_000,
    });
  },
);

t.test('options: a baseline is a folder and the share that its interval must reach', async (t) => {
  t.match(line('plain', '--baseline', 'there').common, { baseline: resolve('there'), baselineShare: 0.97 });
  t.match(line('all', '--baseline', '/x', '--baseline-share', '0.95').common, { baselineShare: 0.95 });
  t.match(line('plain').common, { baseline: undefined });
  t.equal(optionsFor(line('all', '--baseline', '/x'), PLAIN).baseline, '/x');
  t.equal(optionsFor(line('all', '--baseline', '/x'), OWN).baseline, undefined, 'a scenario that takes none');
});

t.test('options: a given number of rounds is exact', async (t) => {
  t.match(optionsFor(line('plain', '--rounds', '7'), PLAIN), { rounds: 7, roundsMax: 7 });
  t.match(optionsFor(line('all', '--rounds', '7'), OWN), { rounds: 7, roundsMax: 7 });
});

t.test('options: a target bounds the load unless the command line says otherwise', async (t) => {
  const target = ['--target', 'http://gateway.example:8080/'];
  t.match(optionsFor(line('plain', ...target), PLAIN), {
    target: 'http://gateway.example:8080',
    connections: 8,
    users: 4,
    rounds: 3,
    roundsMax: 3,
    durationMs: 5_000,
    maxRatePerSecond: 100,
  });
  t.match(
    optionsFor(line('all', ...target), OWN),
    { connections: 8 },
    'before what the scenario is made for',
  );
  const raised = line('plain', ...target, '--connections', '64', '--max-rate', '5000', '--users', '50');
  t.match(optionsFor(raised, PLAIN), { connections: 64, maxRatePerSecond: 5_000, users: 50 });
  t.match(
    optionsFor(line('plain', ...target, '--rate', '300'), PLAIN),
    { ratePerSecond: 300, maxRatePerSecond: undefined },
    'a rate that was asked for is sent',
  );
});

t.test('options: each refusal names its option', async (t) => {
  const refused: [string, string[]][] = [
    ['name one scenario: plain, own, or all', ['nothing']],
    ['name one scenario', []],
    ['name one scenario', ['plain', 'own']],
    ['--connections is a number', ['plain', '--connections', 'many']],
    ['--connections is a number', ['plain', '--connections', '0']],
    ['--connections is a number', ['plain', '--connections', '']],
    ['--duration is a number', ['plain', '--duration', '0']],
    ['--warmup is a number', ['plain', '--warmup=-1']],
    ['--rounds is a whole number', ['plain', '--rounds', '1.5']],
    ['--users is a number', ['plain', '--users', '0']],
    ['--rate is a number', ['plain', '--rate', 'Infinity']],
    ['give one of them', ['plain', '--rate', '10', '--max-rate', '20']],
    ['speaks no TLS', ['plain', '--target', 'https://gateway.example']],
    ['--target is an address', ['plain', '--target', 'gateway.example']],
    ['own takes no --target: it publishes with a module key', ['own', '--target', 'http://gateway.example']],
    ['not with --target', ['plain', '--peers', '--target', 'http://gateway.example']],
    ['--internal belongs to a --target', ['plain', '--internal', 'http://127.0.0.1:9090']],
    ['--internal is an address', ['plain', '--target', 'http://a.example', '--internal', 'x']],
    ['own takes no --baseline: plain do', ['own', '--baseline', '/x']],
    ['not with --target', ['plain', '--baseline', '/x', '--target', 'http://a.example']],
    ['--baseline-share is a number', ['plain', '--baseline', '/x', '--baseline-share', 'most']],
    ['colour', ['plain', '--colour', 'red']],
  ];
  for (const [word, args] of refused) {
    const text = faults(...args).join('\n');
    t.ok(text.includes(word), `${args.join(' ')}: ${text}`);
  }
});

t.test('options: every fault is reported at once', async (t) => {
  t.equal(faults('nothing', '--connections', 'x', '--duration', '0', '--target', 'y').length, 4);
});
