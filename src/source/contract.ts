/** The PostgreSQL types of the contract, as the catalog writes them. */
export type ContractType =
  | 'integer'
  | 'bigint'
  | 'uuid'
  | 'text'
  | 'boolean'
  | 'jsonb'
  | 'timestamp with time zone';

/** A column that exports read. */
export interface ContractColumn {
  readonly name: string;
  readonly type: ContractType;
  readonly nullable: boolean;
  /** Whether a relation may lack the column. */
  readonly optional?: true;
  readonly why: string;
  /** What exports compute of the column. PostgreSQL rejects a column whose type does not fit. */
  readonly uses: (column: string) => readonly string[];
  /** Common names of such a column in other tables, the best first. */
  readonly otherNames: readonly string[];
  /** The SQL of the column in a view over a table that has nothing like it; null if a person has to choose. */
  readonly fallback: string | null;
}

/** How a statement of exports finds rows, which an index has to support. */
export interface AccessPath {
  /** The columns of the index; a collation may follow the name. */
  readonly columns: readonly string[];
  /** Conditions and order of the statement, over the alias `r` and the project `$team`. */
  readonly where: string;
  readonly orderBy: string | null;
  /** What each read costs without the index. */
  readonly without: string;
}

/** What exports need of a relation. */
interface RelationContract {
  readonly columns: readonly ContractColumn[];
  readonly accessPaths: readonly AccessPath[];
}

/** The relations that exportd reads, and the setting that names each. */
export const relationSettings = {
  events: 'EXPORTD_EVENTS_RELATION',
  persons: 'EXPORTD_PERSONS_RELATION',
  person_distinct_ids: 'EXPORTD_PERSON_DISTINCT_IDS_RELATION',
} as const;

/** What a relation of the source contains. */
export type RelationRole = keyof typeof relationSettings;

/** The key columns of events: a row without one is never exported. */
export const keyColumnNames: ReadonlySet<string> = new Set(['team_id', 'uuid', 'inserted_at']);

/** The types that exports read as they are, for each type of the contract. Other types are converted in each row. */
export const unconvertedTypes: Readonly<Record<ContractType, readonly string[]>> = {
  integer: ['smallint', 'integer', 'bigint'],
  bigint: ['smallint', 'integer', 'bigint'],
  uuid: ['uuid'],
  text: ['text', 'character varying', 'character', 'name', 'citext'],
  boolean: ['boolean'],
  jsonb: ['json', 'jsonb'],
  'timestamp with time zone': ['timestamp with time zone', 'timestamp without time zone'],
};

/** The cast of a column of another type, in exports and in queries. JSON is not parsed into `jsonb`, which cannot hold all of it. */
export const contractCasts: Readonly<Record<ContractType, string>> = {
  integer: 'int',
  bigint: 'bigint',
  uuid: 'uuid',
  text: 'text',
  boolean: 'boolean',
  jsonb: 'json',
  'timestamp with time zone': 'timestamptz',
};

const anyUuid = `'00000000-0000-0000-0000-000000000000'::uuid`;
const converted = (type: ContractType) => (column: string) => [`${column}::${contractCasts[type]}`];
const compared = (type: ContractType, value: string) => (column: string) => [
  `${column}::${contractCasts[type]}`,
  `${column} > ${value}`,
];

const text = { type: 'text', uses: converted('text') } as const;
const json = { type: 'jsonb', uses: converted('jsonb') } as const;
const version = { type: 'bigint', uses: converted('bigint'), nullable: false } as const;
const id = { type: 'uuid', uses: compared('uuid', anyUuid), nullable: false } as const;
const time = { type: 'timestamp with time zone', uses: converted('timestamp with time zone') } as const;
const sortedTime = {
  type: 'timestamp with time zone',
  uses: compared('timestamp with time zone', 'now()'),
} as const;

const teamId: ContractColumn = {
  name: 'team_id',
  type: 'integer',
  nullable: false,
  why: 'The project of the row: the number that `exportd project create` prints. A constant in a table of one project.',
  uses: (column) => [`${column} = 1::int`],
  otherNames: ['project_id', 'tenant_id', 'tenant', 'organization_id', 'org_id'],
  fallback: '1',
};

const isDeleted: ContractColumn = {
  name: 'is_deleted',
  type: 'boolean',
  nullable: false,
  why: 'Whether the row was deleted. It is exported as such, once.',
  uses: (column) => [`not ${column}`],
  otherNames: ['deleted', 'deleted_at'],
  fallback: 'false',
};

const versionColumn: ContractColumn = {
  name: 'version',
  ...version,
  why: 'Grows with each change. Readers of the files find the newest state by it.',
  otherNames: ['revision', 'lock_version'],
  fallback: '0',
};

const updatedAt: ContractColumn = {
  name: 'updated_at',
  ...sortedTime,
  nullable: false,
  why: 'When the row last changed. It decides which interval a person belongs to.',
  otherNames: ['modified_at', 'changed_at', 'last_modified', 'created_at'],
  fallback: null,
};

const within = (column: string): string =>
  `r.team_id = $team::int and r.${column} >= now() - interval '1 hour' and r.${column} < now()`;

/** What exports need of each relation of the source. `README.md` is the same for readers; a test compares both. */
export const sourceContract: Readonly<Record<RelationRole, RelationContract>> = {
  events: {
    columns: [
      teamId,
      {
        name: 'uuid',
        ...id,
        why: 'Identifies the row. Pages are ordered by it, and exportd compares by it which rows arrived.',
        otherNames: ['id', 'event_id', 'guid'],
        fallback: null,
      },
      {
        name: 'event',
        ...text,
        nullable: false,
        why: 'The name of what happened.',
        otherNames: ['event_name', 'name', 'event_type', 'type', 'action'],
        fallback: `'event'`,
      },
      {
        name: 'distinct_id',
        ...text,
        nullable: false,
        why: 'Who did it, as the application calls them.',
        otherNames: [
          'user_id',
          'user_name',
          'username',
          'anonymous_id',
          'visitor_id',
          'customer_id',
          'account_id',
        ],
        fallback: `''`,
      },
      {
        name: 'person_id',
        type: 'uuid',
        nullable: true,
        uses: converted('uuid'),
        why: 'The person, if persons have ids.',
        otherNames: [],
        fallback: 'null::uuid',
      },
      {
        name: 'properties',
        ...json,
        nullable: false,
        why: 'Everything else about the event.',
        otherNames: ['details', 'data', 'payload', 'props', 'attributes', 'metadata', 'body'],
        fallback: 'to_jsonb(source)',
      },
      {
        name: 'person_properties',
        ...json,
        nullable: true,
        optional: true,
        why: 'The person at the time of the event. Without the column they are read from the persons relation, which then has to exist.',
        otherNames: [],
        fallback: 'null::jsonb',
      },
      {
        name: 'elements_chain',
        ...text,
        nullable: false,
        why: 'The elements of a page that were clicked; empty for most.',
        otherNames: [],
        fallback: `''`,
      },
      {
        name: 'timestamp',
        ...time,
        nullable: false,
        why: 'When it happened, by the clock of the client.',
        otherNames: [
          'happened_at',
          'occurred_at',
          'event_time',
          'event_timestamp',
          'time',
          'ts',
          'at',
          'date',
          'created_at',
          'inserted_at',
        ],
        fallback: null,
      },
      {
        name: 'created_at',
        ...time,
        nullable: true,
        why: 'When the application received it.',
        otherNames: ['received_at', 'ingested_at', 'inserted_at'],
        fallback: 'null::timestamptz',
      },
      {
        name: 'inserted_at',
        ...sortedTime,
        nullable: false,
        why: 'When the row was inserted, by the clock of PostgreSQL. It decides which interval a row belongs to, so it must never change.',
        otherNames: ['_inserted_at', 'ingested_at', 'received_at', 'stored_at', 'loaded_at', 'created_at'],
        fallback: null,
      },
    ],
    accessPaths: [
      {
        columns: ['team_id', 'inserted_at', 'uuid'],
        where: within('inserted_at'),
        orderBy: 'r.inserted_at, r.uuid',
        without: 'each page of an export reads and sorts the whole relation',
      },
    ],
  },
  persons: {
    columns: [
      teamId,
      {
        name: 'id',
        ...id,
        why: 'Identifies the person; events and distinct ids refer to it.',
        otherNames: ['uuid', 'person_id', 'user_id'],
        fallback: null,
      },
      {
        name: 'properties',
        ...json,
        nullable: false,
        why: 'Everything that is known about the person.',
        otherNames: ['details', 'data', 'attributes', 'metadata'],
        fallback: 'to_jsonb(source)',
      },
      {
        name: 'created_at',
        ...time,
        nullable: true,
        why: 'When the person was first seen.',
        otherNames: ['inserted_at'],
        fallback: 'null::timestamptz',
      },
      updatedAt,
      versionColumn,
      isDeleted,
    ],
    accessPaths: [
      {
        columns: ['team_id', 'updated_at'],
        where: within('updated_at'),
        orderBy: 'r.updated_at',
        without: 'each page of an export of persons reads and sorts all persons',
      },
      {
        columns: ['team_id', 'id'],
        where: `r.team_id = $team::int and r.id = ${anyUuid}`,
        orderBy: null,
        without: 'each row of an export reads all persons to find its own',
      },
    ],
  },
  person_distinct_ids: {
    columns: [
      teamId,
      {
        name: 'distinct_id',
        type: 'text',
        nullable: false,
        uses: (column) => [`${column}::text collate "C"`],
        why: 'An id that the application uses for the person. An export of persons has one row for each.',
        otherNames: ['user_id', 'user_name', 'username', 'external_id', 'email'],
        fallback: null,
      },
      {
        name: 'person_id',
        ...id,
        why: 'The person that the distinct id belongs to now.',
        otherNames: ['person_uuid', 'id', 'uuid'],
        fallback: null,
      },
      versionColumn,
      updatedAt,
      isDeleted,
    ],
    accessPaths: [
      {
        columns: ['team_id', 'updated_at', 'distinct_id collate "C"'],
        where: within('updated_at'),
        orderBy: 'r.updated_at, r.distinct_id::text collate "C"',
        without: 'each page of an export of persons reads and sorts all distinct ids',
      },
      {
        columns: ['team_id', 'person_id'],
        where: `r.team_id = $team::int and r.person_id = ${anyUuid}`,
        orderBy: null,
        without: 'each changed person reads all distinct ids',
      },
      {
        columns: ['team_id', 'distinct_id'],
        where: `r.team_id = $team::int and r.distinct_id = ''`,
        orderBy: null,
        without: 'each event without person_properties reads all distinct ids',
      },
    ],
  },
};
