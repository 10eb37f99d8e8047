Bfused_matmul_batches_transposedJ`ßp@ì¸m?ŠÈ!>½Ñ¾G–ª¿#k½¿ï@n¿î|
Áæ¥¿Á)Å>\'€ÀÌ¶¿#±â¾U,SÀ¢6Ö>ZñÞ¿gÍ¿øIŠÀ¦ðÄ?Æ¼¾yÈÀ¥fœ¿(ö¿