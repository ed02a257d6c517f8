import { isTimeZone } from '../../domain/intervals.ts';
import type { Node } from '../ast_node.ts';
import type { Statement } from '../resolve/statement.ts';

/** Checks a time zone literal. @throws DialectError if it is not a time zone */
export function timeZoneNamed(name: string, node: Node, statement: Statement): string {
  if (!isTimeZone(name))
    throw statement.error("Unknown time zone. Use an IANA name such as 'Europe/Berlin'.", node);
  return name;
}
