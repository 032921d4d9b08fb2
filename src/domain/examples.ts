/** Values that several descriptions of the API show. */

/** 32 bytes in base64url: a public key, a challenge, a code, a token. */
export const KEY_EXAMPLE = 'yM8KUX4gAYjQnJK0ZrbVtmCdSQvR3u4GXLNHZDfXG3w';
/** 64 bytes in base64url. */
export const SIGNATURE_EXAMPLE =
  '8pUN4qTBDsNwaxjEGjCZLRrZmVdMzUdyFVC6zL6cP0VOrbTCS1GyOLDaUMHVdC5mZWTVDqHYM1pDRHSOlmHeCA';
export const ID_EXAMPLE = '1870000000000000000';
export const MCP_SESSION_EXAMPLE = 'k0HVnKHCv5zvqBwlVvH1Cn0PsQe7mXr2LdA9uTy4';
