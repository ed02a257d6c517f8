import type { Node } from '../ast_node.ts';
import type { Statement } from '../resolve/statement.ts';
import { isTimeZone } from '../time_zone.ts';

/** Checks a time zone literal. @throws DialectError if it is not a time zone */
export function timeZoneNamed(name: string, node: Node, statement: Statement): string {
  if (!isTimeZone(name))
    throw statement.error("Unknown time zone. Use an IANA name such as 'Europe/Berlin'.", node);
  return name;
}
