import { IANAZone } from 'luxon';
import { bind, Sql } from './sql.ts';

const utcNames = new Set(['UTC', 'Etc/UTC', 'GMT', 'Etc/GMT']);

/** A time zone: the bound parameter of its name. */
export class TimeZone extends Sql {
  readonly name: string;

  constructor(name: string) {
    super(bind(name, 'text').parts);
    this.name = name;
  }

  /** Whether no clock change ever repeats or skips a local time, and units have fixed lengths. */
  get isUtc(): boolean {
    return utcNames.has(this.name);
  }
}

/** The three-letter names that Node.js and PostgreSQL agree on. CST, for example, has no DST in PostgreSQL. */
const shortNames = new Set([
  ...['UTC', 'UCT', 'GMT', 'CET', 'EET', 'MET', 'WET'],
  ...['EST', 'MST', 'HST', 'PRC', 'ROC', 'ROK'],
]);

/**
 * Whether a name is an IANA time zone. Offsets such as +05:00 are rejected: Node.js and PostgreSQL read them with
 * opposite signs.
 */
export const isTimeZone = (name: string): boolean =>
  IANAZone.isValidZone(name) &&
  !/^[+-]/.test(name) &&
  (name.length !== 3 || shortNames.has(name.toUpperCase()));
