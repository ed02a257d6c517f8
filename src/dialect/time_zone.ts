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
