import type pg from 'pg';
import type { ErrorOwner } from '../domain/errors.ts';

/** What an error of PostgreSQL means for the export. */
export interface StateClassification {
  readonly type: string;
  readonly message: string;
  readonly owner: ErrorOwner;
}

/** `server` is PostgreSQL's message, which contains identifiers only. */
type Describe = (server: string, state: string) => StateClassification;

/** SQLSTATEs with their own message. */
const states: Readonly<Record<string, Describe>> = {
  '2201B': (server) => ({
    type: 'InvalidRegularExpression',
    message: `PostgreSQL rejects a regular expression in the export's filters (${server}). Correct the field 'filters' of its destination.`,
    owner: 'tenant',
  }),
  '42P01': (server) => ({
    type: 'UndefinedTable',
    message: `A relation is missing (${server}). Check the settings EXPORTD_EVENTS_RELATION, EXPORTD_PERSONS_RELATION and EXPORTD_PERSON_DISTINCT_IDS_RELATION.`,
    owner: 'operator',
  }),
  '42703': (server) => ({
    type: 'UndefinedColumn',
    message: `A relation lacks a column (${server}). "exportd source check" compares the relations of the source with what exports need.`,
    owner: 'operator',
  }),
  '42501': (server) => ({
    type: 'InsufficientPrivilege',
    message: `The database denied access (${server}). Grant exportd's role the permission to read.`,
    owner: 'operator',
  }),
  '3D000': (server) => ({
    type: 'UndefinedDatabase',
    message: `The database does not exist (${server}). Check DATABASE_URL and SOURCE_DATABASE_URL.`,
    owner: 'operator',
  }),
  '3F000': (server) => ({
    type: 'UndefinedSchema',
    message: `The database lacks a schema (${server}). Check the names of the relations in exportd's settings.`,
    owner: 'operator',
  }),
  '53100': () => ({
    type: 'DiskFull',
    message: "The disk of the database's server is full. Free space on it.",
    owner: 'operator',
  }),
  '55P03': (server) => ({
    type: 'RelationLocked',
    message: `A relation of the database is locked (${server}). End the transaction that holds the lock.`,
    owner: 'operator',
  }),
  '57014': (_, state) => ({
    type: 'StatementTimeout',
    message: `A statement exceeded its timeout and was cancelled (SQLSTATE ${state}). Statements on the source have EXPORTD_SOURCE_STATEMENT_TIMEOUT.`,
    owner: 'nobody',
  }),
};

/** The same by SQLSTATE class: its first two characters. */
const classes: Readonly<Record<string, Describe>> = {
  '22': (_, state) => ({
    type: 'DataException',
    message: `The source could not compute a value of a row (SQLSTATE ${state}). Check the views that exportd reads, and the export's \`dialect_query\` if it has one.`,
    owner: 'tenant',
  }),
  '28': () => ({
    type: 'InvalidAuthorization',
    message: 'The database rejected the login. Check DATABASE_URL and SOURCE_DATABASE_URL.',
    owner: 'operator',
  }),
  // In src/source, one that an export's own query causes becomes `SelectionRejected`, one of a column `InvalidRelation`.
  '42': (server, state) => ({
    type: 'StatementRejected',
    message: `The database rejected a statement (${server}, SQLSTATE ${state}). Run "exportd source check", which compares the relations of the source with what exports need.`,
    owner: 'operator',
  }),
};

/** Classifies an error that PostgreSQL reported. Its message never contains a value. */
export function classifyState(error: pg.DatabaseError): StateClassification {
  const state = error.code ?? '';
  return (
    (states[state] ?? classes[state.slice(0, 2)])?.(error.message, state) ?? {
      type: 'DatabaseUnavailable',
      message: `The database could not execute a statement (SQLSTATE ${state}).`,
      owner: 'nobody',
    }
  );
}
