// The page of bounds: how much of everything that comes from outside exportd takes, for how long, and which share of it a
// project gets. Each is named here once and enforced where it enters, with a message that states it. README.md lists them.

/** What a bound counts. Sizes are bytes, times milliseconds. */
type Unit = 'bytes' | 'bytes/s' | 'characters' | 'ms' | 'items' | 'levels' | 'at a time';

/** The most that exportd takes of something. */
export interface Bound {
  readonly max: number;
  readonly unit: Unit;
  /** What is bounded, for the table. */
  readonly what: string;
  /** What happens to more. */
  readonly more: string;
}

const boundIn =
  (unit: Unit) =>
  (max: number, what: string, more: string): Bound => ({ max, unit, what, more });
const bytes = boundIn('bytes');
const bytesPerSecond = boundIn('bytes/s');
const characters = boundIn('characters');
const ms = boundIn('ms');
const items = boundIn('items');
const levels = boundIn('levels');
const atATime = boundIn('at a time');

const [kib, mib] = [1_024, 1_048_576];

/** The bounds by what sends it. */
export const boundGroups = {
  'HTTP requests': {
    connections: atATime(10_000, 'Connections of a server', 'they are closed at once'),
    sessionBody: bytes(2 * kib, 'The body that signs in to the console', '413'),
    bodyDepth: levels(64, 'Levels of a JSON body', '400'),
    bodyFields: items(10_000, 'Fields of a JSON body, with those of inner objects', '400'),
    bodyValues: items(50_000, 'Values of a JSON body, with those of inner lists and objects', '400'),
    bodyFieldName: characters(1_000, 'Name of a field in a body', '400'),
    bodyItems: items(10_000, 'Items of a list in a body', '400'),
    failedAuthenticationAddresses: items(
      10_000,
      'Addresses whose failed authentications are counted',
      'the oldest is forgotten',
    ),
    listedExports: bytes(2 * mib, 'The exports of a page', 'it has fewer; `next` leads to the others'),
    monitoringAge: ms(1_000, 'Age of the text of `/metrics`', 'it is made again'),
  },
  'Batch exports': {
    name: characters(255, 'Name of an export', '400'),
    dialectQuery: characters(65_536, 'Its query', '400'),
    queryNodes: items(12_000, 'Names, values and operations of its query', '400'),
    config: bytes(256 * kib, 'The config of its destination, as JSON', '400'),
    configText: characters(4_096, 'A text in it, such as the prefix', '400'),
    eventNames: items(1_000, 'Names in `include_events` or `exclude_events`', '400'),
    eventName: characters(1_000, 'One of them', '400'),
    filters: items(100, 'Filters', '400'),
    filterValues: items(10_000, 'Values in its filters', '400'),
    filterExpressions: characters(16_384, 'Keys and expressions in its filters, together', '400'),
    patterns: items(20, 'Regular expressions in its filters', '400'),
    pattern: characters(1_000, 'One of them', '400'),
    queryColumns: items(500, 'Columns of a query', '400'),
  },
  'Rows of the source': {
    previewRow: characters(32_768, 'Values of a row of a preview, together', 'its values are cut evenly'),
    previewValue: characters(4_096, 'A value of a preview', 'it is cut'),
    sampleTime: ms(
      3_000,
      'Reading of the rows of a preview or an estimate',
      'the rows that have arrived are enough',
    ),
    sampledRow: bytes(16 * mib, 'A row that an estimate measures', '400'),
  },
  'Shares of a project': {
    previews: atATime(3, 'Previews, estimates and checks of the source, on a server', 'they wait'),
    previewsOfProject: atATime(1, '– of a project', 'they wait'),
    previewsOfKey: items(4, '– of an API key, running or waiting', '429'),
    checks: atATime(8, 'Checks of new or changed exports, on a server', 'they wait'),
    checksOfProject: atATime(2, '– of a project', 'they wait'),
    checksOfKey: items(20, '– of an API key, running or waiting', '429'),
    tests: atATime(16, 'Tests of destinations and webhooks, on a server', 'they wait'),
    testsOfProject: atATime(4, '– of a project', 'they wait'),
    testsOfKey: items(8, '– of an API key, running or waiting', '429'),
    connectionsOfProject: atATime(
      5,
      'Connections to the control database that the requests of a project use, of the 20 of a server',
      'they wait',
    ),
    shareWait: ms(10_000, 'Wait of a request for its turn', '429'),
    jobs: atATime(
      12,
      'Verifications, requests about tables and tests, in a worker; the last place is for a project that has none',
      'they wait',
    ),
    jobsOfProject: atATime(6, '– of a project', 'they wait'),
    verifications: items(1, 'Verifications of a project, running or waiting', '429'),
    differences: items(2, 'Its readings of differences, running or waiting', '429'),
    tableRequests: items(4, 'Its requests about tables', '429'),
  },
  'S3 servers': {
    s3Response: bytes(2 * mib, 'A response other than an object', 'the request fails, `ResponseTooLarge`'),
    s3Tags: items(50_000, 'Tags of its XML', 'the request fails, `ResponseTooLarge`'),
    interimAnswers: items(16, 'Interim answers (1xx) to a request', 'its connection is closed'),
    s3MinRate: bytesPerSecond(
      16 * kib,
      'The least average speed of a transfer that takes longer than six times `EXPORTD_S3_REQUEST_TIMEOUT`',
      'the request is repeated as after no response',
    ),
    takenKeys: items(
      50,
      'Keys of files in one attempt that objects of others have',
      'the attempt fails, `KeysTaken`',
    ),
    serverText: characters(
      500,
      'What a server says of an error, for the owner of the export',
      'it is cut with an ellipsis',
    ),
    s3Token: characters(1_024, 'An upload id or an ETag', 'the request fails, `UnexpectedResponse`'),
    listedKeys: items(10_000_000, 'Keys of a list', 'the list fails, `ListTooLong`'),
    listedUploads: items(10_000, 'Open uploads under a prefix of a file', 'the list fails, `ListTooLong`'),
    misnamedManifests: items(
      1_000,
      'Objects in the folder of manifests that are none',
      'the verification fails, `ListTooLong`',
    ),
  },
  Manifests: {
    manifest: bytes(
      32 * mib,
      'A manifest: room for its files, with long keys',
      'the run fails, `ManifestTooLarge`; a finding of a verification',
    ),
    manifestValues: items(1_000_000, 'Values in it', 'it is no manifest'),
    manifestFiles: items(10_000, 'Files of an interval', 'the run fails, `TooManyFiles`'),
    shortForeignText: characters(
      64 * kib,
      'A manifest or a commit of a table that is parsed where it is',
      'a process with a limit of memory and time parses it',
    ),
    parsedObjects: atATime(2, 'Objects that a worker has parsed by a process', 'they wait, projects in turn'),
    readingProjects: atATime(3, 'Projects whose files a worker has read, each by a process', 'they wait'),
    tableLogBytes: bytes(
      64 * mib,
      'Objects of the log of a table that are read together: about 100,000 files',
      'the run fails, `TableTooLarge`',
    ),
    tableValues: items(4_000_000, 'Values in its commits', 'the run fails, `TableDamaged`'),
    tableHint: bytes(64 * kib, 'Its `_last_checkpoint`', 'it is passed over'),
    tableSchema: characters(mib, 'Its schema', 'the run fails, `TableDamaged`'),
    tableLog: items(100_000, 'Listed objects of the log of a table', 'the run fails, `ListTooLong`'),
    checkpoint: bytes(128 * mib, 'A checkpoint of a table, unpacked', 'the run fails, `TableDamaged`'),
    checkpointValues: items(8_000_000, 'Values in it', 'the run fails, `TableDamaged`'),
    tableManifests: items(50_000, 'Manifests of a check or repair of a table', 'it fails and says so'),
    rejectedFile: bytes(64 * mib, 'The rejected rows of an interval', 'the run fails, `TooManyRejectedRows`'),
    verifiedManifests: items(
      1_000,
      'Manifests of a verification by a worker; `exportd verify` has no bound',
      'it fails and says so',
    ),
    verifiedManifestBytes: bytes(64 * mib, '– all of them together', 'it fails and says so'),
  },
  'Objects that are read': {
    line: bytes(128 * mib, 'A line or record after unpacking', 'the object is unreadable'),
    rowKey: characters(16_384, 'The time and the id of a row', 'the object is unreadable'),
    excessRows: items(10_000, 'Rows more than its manifest says', 'it is unreadable from there on'),
    parquetFooter: bytes(32 * mib, 'The metadata of a Parquet file', 'it is unreadable'),
    parquetObjects: items(1_000_000, 'Structs, lists and texts in it', 'it is unreadable'),
    parquetDepth: levels(16, 'Its structs in structs', 'it is unreadable'),
    // One row short of a row group's size, a block of 8 MiB of the narrowest rows follows: 247,000.
    parquetRows: items(500_000, 'Rows of a row group', 'it is unreadable'),
    parquetColumn: bytes(160 * mib, 'A column of a row group, unpacked', 'it is unreadable'),
  },
  'Webhooks, signals and files': {
    webhookResponse: bytes(
      64 * kib,
      'A response to a webhook',
      'its connection is closed; its status counts',
    ),
    signalInput: bytes(4 * kib, 'The input of a signal of Temporal', 'the signal is rejected'),
    signalName: characters(100, 'Its name', 'it is cut'),
    signalIdentity: characters(200, 'Its sender', 'it is cut'),
    exportsFile: bytes(4 * mib, 'A file of `exportd apply`', 'it is not read'),
    secretFile: bytes(64 * kib, 'A file that `!file` names', 'it is not read'),
  },
  'Foreign text': {
    errorCode: characters(64, 'The code of an error of S3 or STS', 'it is called `UnknownError`'),
    storedText: characters(
      2_000,
      'An error or a line of a log that is stored or sent',
      'it is cut; control characters become spaces',
    ),
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Bound>>>>;

/** Every bound by its name. */
export const bounds = {
  ...boundGroups['HTTP requests'],
  ...boundGroups['Batch exports'],
  ...boundGroups['Rows of the source'],
  ...boundGroups['Shares of a project'],
  ...boundGroups['S3 servers'],
  ...boundGroups.Manifests,
  ...boundGroups['Objects that are read'],
  ...boundGroups['Webhooks, signals and files'],
  ...boundGroups['Foreign text'],
};

/** A bound as messages and the table state it: `16 MiB`, `10 s`, `1,000 characters`. */
export function boundText({ max, unit }: Pick<Bound, 'max' | 'unit'>): string {
  switch (unit) {
    case 'bytes/s':
      return `${boundText({ max, unit: 'bytes' })}/s`;
    case 'bytes':
      return max % mib === 0 ? `${max / mib} MiB` : max % kib === 0 ? `${max / kib} KiB` : `${max} bytes`;
    case 'ms':
      return max % 1_000 === 0 ? `${max / 1_000} s` : `${max} ms`;
    case 'items':
    case 'at a time':
      return max.toLocaleString('en-US');
    default:
      return `${max.toLocaleString('en-US')} ${unit}`;
  }
}

/** Characters that break lines, or change the direction of text around them. */
const unsafe = /[\p{Cc}\u{2028}\u{2029}\u{200E}\u{200F}\u{061C}\u{202A}-\u{202E}\u{2066}-\u{2069}]+/gu;

/** Text of a foreign server as it is stored or sent: on one line, and cut with an ellipsis. */
export function safeText(text: string): string {
  const { max } = bounds.storedText;
  // Cut before the rest: the text may have megabytes.
  const line = text.slice(0, max).replace(unsafe, ' ').toWellFormed();
  return text.length > max ? `${line.slice(0, max - 1)}…` : line;
}
