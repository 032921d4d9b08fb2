/** Prints docs/reference/CONFIGURATION.md from the schema of the configuration, the settings registry and the shared bounds. */
import { twinName, twins } from '../../src/config/environment.ts';
import { reloadOf } from '../../src/domain/config/changes.ts';
import { DEFAULTS } from '../../src/domain/config/configuration.ts';
import { configurationSchema } from '../../src/domain/config/file.ts';
import {
  type Amount,
  BOUND_NAMES,
  type BoundName,
  boundRow,
  limitsOf,
} from '../../src/domain/limits/bounds.ts';
import { SETTING_GROUPS, type SettingGroup, type SettingRow } from '../../src/domain/settings/definitions.ts';
import { LiveSettings, SETTING_NAMES, SETTINGS } from '../../src/domain/settings/settings.ts';

interface Node {
  type?: string;
  description?: string;
  properties?: Record<string, Node>;
  patternProperties?: Record<string, Node>;
  items?: Node;
  anyOf?: readonly Node[];
  enum?: readonly string[];
  minimum?: number;
  maximum?: number;
}

const RELOAD_WORDS = { value: 'read', content: 'content', none: '' } as const;

function typeOf(node: Node): string {
  if (node.anyOf !== undefined) return node.anyOf.map(typeOf).join(' or ');
  if (node.type === 'array') return `list of ${node.items?.type ?? 'values'}`;
  if ((node.type === 'integer' || node.type === 'number') && node.maximum !== undefined)
    return `${node.type}, ${node.minimum ?? 0} to ${node.maximum}`;
  if (node.enum !== undefined) return node.enum.map((value) => `"${value}"`).join(', ');
  return node.type ?? 'object';
}

function keyRows(node: Node, path: readonly string[]): string[] {
  return Object.entries(node.properties ?? {}).flatMap(([key, child]) => {
    const at = [...path, key];
    if (child.properties !== undefined) return keyRows(child, at);
    const [each] = Object.values(child.patternProperties ?? {});
    const below = each?.properties === undefined ? [] : keyRows(each, [...at, 'NAME']);
    const twin = twins(['NAME']).has(twinName(at)) ? `\`${twinName(at)}\`` : '';
    const name = at.join('.');
    const given = (DEFAULTS as Readonly<Record<string, unknown>>)[name];
    const standard =
      given === undefined ? '' : `\`${Array.isArray(given) ? given.join(', ') : JSON.stringify(given)}\``;
    const reload = RELOAD_WORDS[reloadOf(name) ?? 'none'];
    const own = `| \`${name}\` | ${typeOf(child)} | ${standard} | ${child.description ?? ''} | ${reload} | ${twin} |`;
    return [own, ...below];
  });
}

function settingRow(name: (typeof SETTING_NAMES)[number]): string {
  const row: SettingRow = SETTINGS[name];
  const bounds = row.type === 'number' ? `${row.min} to ${row.max}` : row.type === 'flag' ? '0 or 1' : 'text';
  const unit = row.type === 'number' ? row.unit : '';
  return `| ${row.id} | ${row.title} | \`${name}\` | ${row.default === '' ? '(empty)' : row.default} | ${unit} | ${bounds} | ${row.summary} |`;
}

/** Under its heading, as in the panel. */
function groupTable(group: SettingGroup): string[] {
  return [
    `### ${group}`,
    '',
    '| Id | Name | Setting | Default | Unit | Bounds | Effect |',
    '|---|---|---|---|---|---|---|',
    ...SETTING_NAMES.filter((name) => SETTINGS[name].group === group).map(settingRow),
    '',
  ];
}

export function configurationPage(): string {
  return [
    '# Configuration',
    '',
    'Generated from the schema by `npm run generate`. The file is JSON; comments and trailing commas are allowed. Relative paths are relative to the working directory. An unknown key is a fault, and so is a key that stands twice.',
    '',
    `A value "env:NAME" is that variable of the environment. A value "file:/PATH" is the content of a file of at most 64 KiB, one newline at its end cut; links are followed, and a file that everyone may write is a fault. Both may stand for any text of the file and in a variable of the last column. A secret that begins with vault:, secret:, aws:, k8s: or docker: is a fault.`,
    '',
    'SIGHUP: "read": a reload takes a new value; "content": it reads the file of that path again; the others need a restart.',
    '',
    '| Key | Type | Default | Meaning | SIGHUP | Environment |',
    '|---|---|---|---|---|---|',
    ...keyRows(configurationSchema as Node, []),
    '',
    '## Runtime settings',
    '',
    "First values stand under `Settings` by name; an admin's change (`POST /ProxyAdmin/api/settings`) is kept in the journal, wins from then on and takes effect at once. The environment twin of a setting is `GATEHOUSE_SETTINGS_` and its name, words parted by underscores.",
    '',
    ...SETTING_GROUPS.flatMap(groupTable),
    '## Shared bounds',
    '',
    'Callers share these bounds, and none may take all: a session, a user and a network each have a share. A network is one IPv4 address or IPv6 /64; a /56 has four shares and a /48 sixteen, never more than three quarters of the maximum. A caller over its share is refused with 429 (code 1002), at the maximum with 503, where the bound says nothing else. `GET /ProxyAdmin/api/bounds` and the metrics `gatehouse_bound_held` and `gatehouse_bound_refusals_total` show what is held and refused. A number that is a setting is described above.',
    '',
    '| Bound | Unit | Maximum | A session | A user | A network | Of what |',
    '|---|---|---|---|---|---|---|',
    ...BOUND_NAMES.map(boundRowText),
    '',
  ].join('\n');
}

/** A share in words: of a setting its name, of a part its value at the defaults. */
function shareText(amount: Amount | undefined, value: number | undefined): string {
  if (amount === undefined) return '';
  if (typeof amount === 'object' && 'percent' in amount) return `\`${amount.percent}\``;
  return typeof amount === 'string' ? `\`${amount}\`` : String(value);
}

function boundRowText(name: BoundName): string {
  const row = boundRow(name);
  const limits = limitsOf(row, new LiveSettings());
  const shares = (['maximum', 'session', 'user', 'network'] as const).map((each) =>
    shareText(row[each], limits[each]),
  );
  return `| \`${name}\` | ${row.unit} | ${shares.join(' | ')} | ${row.summary} |`;
}
