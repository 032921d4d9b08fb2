/** The tables whose rows the specification fixes: errors (7.2 to 7.4), settings (8.1, 8.3), key flags (2.2). */
import t from 'tap';
import { ERRORS, type ErrorName, rpcCode } from '../../src/domain/errors.ts';
import { KeyFlag, keyTypeOf } from '../../src/domain/keys.ts';
import { checkSetting, SETTINGS, type SettingName } from '../../src/domain/settings/settings.ts';

// covers R94
t.test('errors: statuses and messages of an mcp_login are those of spec 7.2', async (t) => {
  const rows: readonly (readonly [ErrorName, number, string])[] = [
    ['InvalidInput', 400, 'Invalid input format'],
    ['SessionNotFound', 401, 'Session not found'],
    ['AccountNotFound', 401, 'Account not found'],
    ['AccessDenied', 401, 'Access denied'],
    ['ChallengeExpired', 401, 'Challenge expired'],
    ['InvalidSignature', 401, 'Invalid signature'],
    ['AccessRateLimit', 429, 'Access rate limit'],
  ];
  for (const [name, status, message] of rows) t.match(ERRORS[name], { status, message }, name);
});

// covers R94
t.test('errors: JSON-RPC codes are those of spec 7.3', async (t) => {
  t.equal(rpcCode('MethodNotFound'), -32601);
  t.equal(rpcCode('InvalidParams'), -32602);
  t.equal(rpcCode('Unauthorized'), -32001);
  t.equal(rpcCode('ResourceNotFound'), -32002);
  for (const name of ['ToolFailed', 'ModuleFailed', 'ModuleTimedOut', 'ModuleUnavailable'] as const)
    t.equal(rpcCode(name), -32000, name);
});

// covers R94
t.test('errors: names and codes of the gateway and of files are those of spec 7.4', async (t) => {
  const codes: Partial<Record<ErrorName, number>> = {
    AccessRateLimit: 1002,
    SessionNotFound: 1101,
    MaxFileSize: 1301,
    AlreadyDownload: 1302,
    TooManyDownloads: 1303,
    CRC32AlreadyUsed: 1304,
    InvalidID: 1305,
    InvalidPart: 1306,
    WrongPart: 1307,
    ChecksumError: 1308,
    InvalidFileName: 1309,
    ChartApiFileError: 1310,
  };
  for (const [name, code] of Object.entries(codes)) t.equal(ERRORS[name as ErrorName].code, code, name);
  t.equal(ERRORS.AccessRateLimit.status, 429);
});

t.test('settings: names and ids are those of spec 8.1', async (t) => {
  const limits: readonly (readonly [SettingName, number])[] = [
    ['ApiRPSLimit', 7],
    ['IpRPSLimit', 23],
    ['PubKeyApiRPSLimit', 10],
    ['SessionApiRPSLimit', 11],
    ['McpApiRPSLimit', 16],
    ['RateLimitWindowSeconds', 25],
  ];
  for (const [name, id] of limits) t.equal(SETTINGS[name].id, id, name);
  t.match(SETTINGS.FileMaxSizeBytes, { max: 100 * 1024 * 1024, clamps: true });
  const ids = Object.values(SETTINGS).map(({ id }) => id);
  t.equal(new Set(ids).size, ids.length, 'no id twice');
});

t.test('settings: RateLimitShadowScopes takes letters of scopes alone', async (t) => {
  for (const value of ['', 'c', 'c;i', ' p ; s;;m '])
    t.same(checkSetting('RateLimitShadowScopes', value), { ok: true, value }, value);
  for (const value of ['x', 'ci', 'c,i', 'c i', 'C'])
    t.match(
      checkSetting('RateLimitShadowScopes', value),
      { ok: false, message: /scopes out of c, i, p/ },
      value,
    );
});

t.test('settings: WebhookPorts takes ports alone, blanks and empty items ignored', async (t) => {
  for (const value of ['', '8443', ' 8443; 9443 ;', '1;65535'])
    t.same(checkSetting('WebhookPorts', value), { ok: true, value }, value);
  for (const value of ['8443;x', '0', '65536', '08443', '-1', '8443,9443', '8443 9443', '8e3', '１'])
    t.match(checkSetting('WebhookPorts', value), { ok: false, message: /ports from 1 to 65535/ }, value);
  t.match(checkSetting('WebhookPorts', '1;'.repeat(200)), { ok: false, message: /at most 256/ });
  t.match(checkSetting('WebhookPorts', 8443), { ok: false, message: /a text/ });
});

t.test('keys: six flag bits by the names of spec 2.2, one of ours, and the kind that they say', async (t) => {
  const specified = ['PasswordKey', 'UserKey', 'Fido2Key', 'McpAccess', 'CardDav', 'Deleted'];
  t.same(Object.keys(KeyFlag), [...specified, 'NoBrowserLogin']);
  const bits = Object.values(KeyFlag);
  t.equal(
    bits.reduce<number>((sum, bit) => sum | bit, 0),
    bits.reduce<number>((sum, bit) => sum + bit, 0),
    'no bit twice',
  );
  t.equal(keyTypeOf(KeyFlag.PasswordKey), 'PasswordKey');
  t.equal(keyTypeOf(KeyFlag.UserKey | KeyFlag.McpAccess), 'UserKey');
  t.equal(keyTypeOf(KeyFlag.Fido2Key | KeyFlag.CardDav), 'FIDO2');
  t.equal(keyTypeOf(KeyFlag.McpAccess | KeyFlag.Deleted), 'Unknown');
});
