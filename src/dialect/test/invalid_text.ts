/** An invalid text, the carets under its wrong line, and the message. */
export type InvalidText = readonly [text: string, carets: string, says: string];
