import * as z from 'zod';
import type { Logger } from '../telemetry/logger.ts';
import { ApiError } from './api_error.ts';

/** How items become responses. */
interface Conversion<Item, Schema extends z.ZodType> {
  /** What an item is, in messages. */
  readonly what: string;
  readonly schema: Schema;
  readonly convert: (item: Item) => z.input<Schema>;
  readonly logger: Logger;
}

/**
 * Converts items to responses. One that does not have the form of a response, for example because a newer version has
 * stored it, is logged and left out: it must not cost the others.
 */
export function toReadableResponses<Item extends { readonly id: string }, Schema extends z.ZodType>(
  items: readonly Item[],
  { what, schema, convert, logger }: Conversion<Item, Schema>,
): z.input<Schema>[] {
  return items.flatMap((item) => {
    try {
      const response = convert(item);
      schema.parse(response);
      return [response];
    } catch (error) {
      logger.error(
        { err: error, id: item.id },
        `This version of exportd cannot read a ${what}. Lists leave it out.`,
      );
      return [];
    }
  });
}

/** Converts one item. @throws ApiError 500 when this version cannot read it */
export function toReadableResponse<Item extends { readonly id: string }, Schema extends z.ZodType>(
  item: Item,
  conversion: Conversion<Item, Schema>,
): z.input<Schema> {
  const [response] = toReadableResponses([item], conversion);
  if (response === undefined) throw unreadable(conversion.what, item.id);
  return response;
}

/** The response to a request for what this version cannot read. */
export const unreadable = (what: string, id: string): ApiError =>
  new ApiError(
    500,
    'unreadable',
    `This version of exportd cannot read the ${what} ${id}, which a newer version may have stored. ` +
      "The server's log has the reason.",
  );
