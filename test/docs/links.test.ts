/** Links between pages, pages that comments cite, files that pages name: each leads to a file, heading or decision. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { anchorOf } from '../tidy/citations.ts';

const DECISIONS = 'docs/decisions';

function filesOf(folders: readonly string[], ending: RegExp): string[] {
  return folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && ending.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => !path.includes('node_modules')),
  );
}

function anchorsOf(page: string): Set<string> {
  return new Set([...page.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading)));
}

type Read = (path: string) => string | undefined;

function read(path: string): string | undefined {
  if (!existsSync(path)) return undefined;
  return path.endsWith('.md') ? readFileSync(path, 'utf8') : '';
}

/** Links of one page to other files that lead nowhere. */
function linkFaults(path: string, page: string, read: Read): string[] {
  const faults: string[] = [];
  const prose = page.replace(/^```[\s\S]*?^```$/gm, '');
  for (const [, target = ''] of prose.matchAll(/\]\(([^)]+)\)/g)) {
    if (/^(https?|mailto):/.test(target)) continue;
    const [file = '', anchor] = target.split('#');
    const found = file === '' ? page : read(join(dirname(path), file));
    if (found === undefined) faults.push(`${path}: ${target} does not exist`);
    else if (anchor !== undefined && !anchorsOf(found).has(anchor))
      faults.push(`${path}: ${target} has no such heading`);
  }
  return faults;
}

/** Pages and decisions that a text cites by path or by number, and that do not exist. */
function citationFaults(path: string, text: string, pages: readonly string[]): string[] {
  const numbers = new Set(pages.map((page) => /decisions\/(\d{4})/.exec(page)?.[1]));
  const cited = [...text.matchAll(/\bdecisions?[ /](\d{4})\b/g)].map(([, number = '']) => number);
  const paths = [...text.matchAll(/\bdocs\/[A-Za-z0-9/_-]+\.md\b/g)].map(([page]) => page);
  return [
    ...cited.filter((number) => !numbers.has(number)).map((number) => `${path}: decision ${number}`),
    ...paths.filter((page) => !pages.includes(page)).map((page) => `${path}: ${page}`),
  ];
}

/** Source files that a page names and that do not exist. */
function sourceFaults(path: string, page: string, exists: (source: string) => boolean): string[] {
  const sources = [...page.matchAll(/`((?:src|test|bench|examples)\/[\w./-]+|tools\/[\w/-]+\.\w+)`/g)].map(
    ([, name = '']) => name,
  );
  return sources.filter((source) => !exists(source)).map((source) => `${path}: ${source}`);
}

const pages = [...filesOf(['docs', 'bench'], /\.md$/), 'README.md', 'CHANGELOG.md', 'CONTRIBUTING.md'];
const SELF = 'test/docs/links.test.ts';

t.test('links: every link of a page leads to a file and a heading', async (t) => {
  t.same(
    pages.flatMap((path) => linkFaults(path, readFileSync(path, 'utf8'), read)),
    [],
  );
});

t.test('links: every decision and page that is cited exists', async (t) => {
  const sources = filesOf(['src', 'kit', 'test', 'bench', 'tools'], /\.(ts|cts|js|html|css)$/);
  const citing = [...sources, ...pages, '.taprc'].filter((path) => path !== SELF);
  t.same(
    citing.flatMap((path) => citationFaults(path, readFileSync(path, 'utf8'), pages)),
    [],
  );
});

t.test('links: every source file that a page names exists', async (t) => {
  t.same(
    pages.flatMap((path) => sourceFaults(path, readFileSync(path, 'utf8'), existsSync)),
    [],
  );
});

t.test(
  'links: each choice of a decision has the four parts, the page its number, and a row of the index',
  async (t) => {
    const index = readFileSync(join(DECISIONS, 'README.md'), 'utf8');
    const faults: string[] = [];
    for (const path of pages.filter((page) => page.startsWith(`${DECISIONS}/0`))) {
      const text = readFileSync(path, 'utf8');
      const [, number = '', title = ''] = /^# (\d{4}) (.+)$/m.exec(text) ?? [];
      if (number === '' || !path.startsWith(`${DECISIONS}/${number}-`)) faults.push(`${path}: its number`);
      for (const section of sectionsOf(text)) {
        const parts = [...section.matchAll(/\*\*(Context|Choice|Price|Reopen)\.?\*\*/g)].map(
          ([, part]) => part,
        );
        if (parts.join() !== 'Context,Choice,Price,Reopen')
          faults.push(`${path}: parts of a choice are ${parts}`);
      }
      if (!index.includes(`| ${title} |`)) faults.push(`${path}: its title is not in the index`);
    }
    t.same(faults, []);
  },
);

/** A page of one choice is one section; in a page of several each has a heading of its own. */
function sectionsOf(page: string): string[] {
  const [head = '', ...sections] = page.split(/^## /m);
  return sections.length === 0 ? [head] : sections;
}

t.test('links: planted faults are found', async (t) => {
  const page =
    '# One Thing\n[a](b.md) [c](#one-thing) [d](#two) [e](f.md#g) [h](https://i.example/) [i](j k.md)\n';
  const planted: Read = (path) => (path === 'docs/f.md' ? '# G' : undefined);
  t.same(linkFaults('docs/a.md', page, planted), [
    'docs/a.md: b.md does not exist',
    'docs/a.md: #two has no such heading',
    'docs/a.md: j k.md does not exist',
  ]);
  t.same(
    sourceFaults('x', '`src/a.ts` `test/b` `src/c/` `npm run c`', (source) => source === 'src/a.ts'),
    ['x: test/b', 'x: src/c/'],
  );
  const text = 'decision 0001, docs/decisions/0002, docs/a.md and docs/b.md';
  t.same(citationFaults('x', text, ['docs/a.md', 'docs/decisions/0002-two.md']), [
    'x: decision 0001',
    'x: docs/b.md',
  ]);
});
