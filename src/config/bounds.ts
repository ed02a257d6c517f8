// The page of bounds: how much of everything that comes from outside exportd takes, for how long, and which share of it a
// project gets. Each is named here once and enforced where it enters, with a message that states it. README.md lists them.

/** What a bound counts. Sizes are bytes, times milliseconds. */
type Unit = 'bytes' | 'characters' | 'ms' | 'items' | 'levels' | 'at a time';

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
const characters = boundIn('characters');
const ms = boundIn('ms');
const items = boundIn('items');
const levels = boundIn('levels');
const atATime = boundIn('at a time');

const [kib, mib] = [1_024, 1_048_576];

/** The bounds by what sends it. */
export const boundGroups = {
  'HTTP requests': {
    sessionBody: bytes(2 * kib, 'The body that signs in to the console', '413'),
    bodyDepth: levels(64, 'Levels of a JSON body', '400'),
    bodyFields: items(10_000, 'Fields of a JSON body, with those of inner objects', '400'),
    bodyFieldName: characters(1_000, 'Name of a field in a body', '400'),
    bodyItems: items(10_000, 'Items of a list in a body', '400'),
    failedAuthenticationAddresses: items(
      10_000,
      'Addresses whose failed authentications are counted',
      'the oldest is forgotten',
    ),
    monitoringAge: ms(1_000, 'Age of the text of `/metrics`', 'it is made again'),
  },
  'Batch exports': {
    name: characters(255, 'Name of an export', '400'),
    dialectQuery: characters(65_536, 'Its query', '400'),
    eventNames: items(1_000, 'Names in `include_events` or `exclude_events`', '400'),
    eventName: characters(1_000, 'One of them', '400'),
    filters: items(100, 'Filters', '400'),
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
    shareWait: ms(10_000, 'Wait of a request for its turn', '429'),
    verifications: atATime(4, 'Verifications of a deployment', '429'),
    verificationsOfProject: atATime(1, '– of a project', '429'),
    liveStreams: atATime(5_000, 'Live streams of consoles, on a server', '503'),
    liveStreamsOfProject: atATime(100, '– of a project', '429'),
    liveStreamsOfKey: atATime(20, '– of an API key', '429'),
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Bound>>>>;

/** Every bound by its name. */
export const bounds = {
  ...boundGroups['HTTP requests'],
  ...boundGroups['Batch exports'],
  ...boundGroups['Rows of the source'],
  ...boundGroups['Shares of a project'],
};

/** A bound as messages and the table state it: `16 MiB`, `10 s`, `1,000 characters`. */
export function boundText({ max, unit }: Bound): string {
  switch (unit) {
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
